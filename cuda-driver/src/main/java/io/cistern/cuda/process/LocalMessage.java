package io.cistern.cuda.process;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// A message of a [LocalSocket], with the descriptor that came with it, if any.
public final class LocalMessage {
    /// `struct msghdr`: name, its length, the pieces, their number, the control bytes, their length, flags.
    private static final int HEADER_BYTES = 56;

    private static final int HEADER_PIECES = 16;
    private static final int HEADER_PIECE_COUNT = 24;
    private static final int HEADER_CONTROL = 32;
    private static final int HEADER_CONTROL_LENGTH = 40;
    private static final int HEADER_FLAGS = 48;

    /// `struct cmsghdr`: length, level, type; then the descriptors.
    private static final int CONTROL_HEADER_BYTES = 16;

    /// Room for four descriptors, so that more than the one allowed are noticed and closed.
    private static final int CONTROL_BYTES = CONTROL_HEADER_BYTES + 4 * Integer.BYTES;

    private static final int SOL_SOCKET = 1;
    private static final int SCM_RIGHTS = 1;
    private static final int MSG_CTRUNC = 0x8;
    private static final int MSG_TRUNC = 0x20;
    private static final int MSG_NOSIGNAL = 0x4000;
    private static final int MSG_CMSG_CLOEXEC = 0x4000_0000;

    private final byte[] bytes;
    private final @Nullable Descriptor attached;

    private LocalMessage(byte[] bytes, @Nullable Descriptor attached) {
        this.bytes = bytes;
        this.attached = attached;
    }

    /// Returns a copy of the bytes that were sent.
    public byte[] bytes() {
        return bytes.clone();
    }

    /// Returns the descriptor that came with the message, if any; the receiver closes it.
    public Optional<Descriptor> attached() {
        return Optional.ofNullable(attached);
    }

    static void send(Descriptor socket, byte[] message, @Nullable Descriptor attached) throws SystemCallException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocateFrom(JAVA_BYTE, message);
            MemorySegment header = header(arena, bytes);
            if (attached != null) {
                MemorySegment control = arena.allocate(CONTROL_HEADER_BYTES + Long.BYTES, Long.BYTES);
                control.set(JAVA_LONG, 0, CONTROL_HEADER_BYTES + Integer.BYTES);
                control.set(JAVA_INT, 8, SOL_SOCKET);
                control.set(JAVA_INT, 12, SCM_RIGHTS);
                control.set(JAVA_INT, CONTROL_HEADER_BYTES, attached.number());
                setControl(header, control);
            }
            // Without NOSIGNAL, sending to a closed socket would kill this process.
            SystemCall.SENDMSG.call(socket.number(), header.address(), MSG_NOSIGNAL);
        }
    }

    static Optional<LocalMessage> receive(Descriptor socket, int mostBytes) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(mostBytes);
            MemorySegment header = header(arena, bytes);
            MemorySegment control = arena.allocate(CONTROL_BYTES, Long.BYTES);
            setControl(header, control);
            int length = (int) SystemCall.RECVMSG.call(socket.number(), header.address(), MSG_CMSG_CLOEXEC);
            List<Descriptor> attached = descriptors(control, header.get(JAVA_LONG, HEADER_CONTROL_LENGTH));
            int flags = header.get(JAVA_INT, HEADER_FLAGS);
            if ((flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || attached.size() > 1) {
                attached.forEach(Descriptor::close);
                throw new IOException(
                        (flags & MSG_TRUNC) != 0
                                ? "a message of more than " + mostBytes + " bytes"
                                : "a message with more than one descriptor, or with one that could not be received");
            }
            if (length == 0) {
                attached.forEach(Descriptor::close);
                throw new EOFException("the other side has closed the connection");
            }
            return Optional.of(new LocalMessage(
                    bytes.asSlice(0, length).toArray(JAVA_BYTE), attached.isEmpty() ? null : attached.getFirst()));
        } catch (SystemCallException failure) {
            return switch (failure.errno()) {
                case SystemCallException.EAGAIN -> Optional.empty();
                // Reported once, before the messages that the other side sent before it closed.
                case SystemCallException.ECONNRESET -> receive(socket, mostBytes);
                default -> throw failure;
            };
        }
    }

    private static MemorySegment header(Arena arena, MemorySegment bytes) {
        // struct iovec: address, length
        MemorySegment piece = arena.allocate(2 * Long.BYTES, Long.BYTES);
        piece.set(ADDRESS, 0, bytes);
        piece.set(JAVA_LONG, Long.BYTES, bytes.byteSize());
        MemorySegment header = arena.allocate(HEADER_BYTES, Long.BYTES);
        header.set(ADDRESS, HEADER_PIECES, piece);
        header.set(JAVA_LONG, HEADER_PIECE_COUNT, 1);
        return header;
    }

    private static void setControl(MemorySegment header, MemorySegment control) {
        header.set(ADDRESS, HEADER_CONTROL, control);
        header.set(JAVA_LONG, HEADER_CONTROL_LENGTH, control.byteSize());
    }

    private static List<Descriptor> descriptors(MemorySegment control, long controlBytes) {
        List<Descriptor> found = new ArrayList<>();
        if (controlBytes >= CONTROL_HEADER_BYTES
                && control.get(JAVA_INT, 8) == SOL_SOCKET
                && control.get(JAVA_INT, 12) == SCM_RIGHTS) {
            long end = Math.min(control.get(JAVA_LONG, 0), controlBytes);
            for (long at = CONTROL_HEADER_BYTES; at + Integer.BYTES <= end; at += Integer.BYTES) {
                found.add(new Descriptor(control.get(JAVA_INT, at)));
            }
        }
        return found;
    }
}
