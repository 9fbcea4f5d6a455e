package io.cistern.cuda.process;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Optional;

/// One end of a connection between two processes on this machine, which preserves message boundaries and
/// carries file descriptors: a Unix socket of type `SOCK_SEQPACKET`.
///
/// No method waits: see [Poll].
///
/// **Threads.** One at a time.
public final class LocalSocket implements AutoCloseable {
    static final int AF_UNIX = 1;
    /// `SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK`
    static final int KIND = 5 | 0x80000 | 0x800;

    private static final int PATH_BYTES = 108;
    private static final int SOL_SOCKET = 1;
    private static final int SO_PEERCRED = 17;

    private final Descriptor descriptor;

    LocalSocket(Descriptor descriptor) {
        this.descriptor = descriptor;
    }

    /// The process at the other end, as the system saw it when the connection was made.
    ///
    /// @param pid its process ID in this process's namespace; 0 if it is not visible there
    /// @param userId its effective user
    public record Peer(long pid, long userId) {}

    /// Connects to the listener at a path.
    ///
    /// @throws SystemCallException if no process listens there, or it is not allowed
    /// @throws IllegalArgumentException if the path has more bytes than the system allows
    public static LocalSocket connect(Path path) throws SystemCallException {
        Descriptor made = newSocket();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment address = address(arena, path);
            SystemCall.CONNECT.call(made.number(), address.address(), address.byteSize());
            return new LocalSocket(made);
        } catch (SystemCallException | RuntimeException failure) {
            made.close();
            throw failure;
        }
    }

    static Descriptor newSocket() throws SystemCallException {
        return new Descriptor((int) SystemCall.SOCKET.call(AF_UNIX, KIND, 0));
    }

    /// `struct sockaddr_un`: the family, then the path, ended by a 0.
    static MemorySegment address(Arena arena, Path path) {
        return address(arena, path, 0);
    }

    /// Returns the path as an abstract name, which begins with a 0 and is free again when its socket is
    /// closed.
    static MemorySegment addressWithoutFile(Arena arena, Path path) {
        return address(arena, path, 1);
    }

    private static MemorySegment address(Arena arena, Path path, int zeros) {
        byte[] name = path.toAbsolutePath().toString().getBytes(StandardCharsets.UTF_8);
        if (name.length >= PATH_BYTES) {
            throw new IllegalArgumentException("the path " + path.toAbsolutePath() + " has " + name.length
                    + " bytes; a socket's path has at most " + (PATH_BYTES - 1));
        }
        MemorySegment address = arena.allocate(2 + PATH_BYTES, 2);
        address.set(JAVA_SHORT, 0, (short) AF_UNIX);
        MemorySegment.copy(name, 0, address, JAVA_BYTE, 2 + zeros, name.length);
        return address;
    }

    /// Returns the effective user of this process.
    public static long ownUserId() {
        try {
            return SystemCall.GETEUID.call();
        } catch (SystemCallException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /// Returns the descriptor to wait for.
    public Descriptor descriptor() {
        return descriptor;
    }

    /// Returns the process at the other end.
    ///
    /// @throws SystemCallException if the system does not report it
    public Peer peer() throws SystemCallException {
        try (Arena arena = Arena.ofConfined()) {
            // struct ucred: pid, uid, gid
            MemorySegment credentials = arena.allocate(3 * Integer.BYTES, Integer.BYTES);
            MemorySegment length = arena.allocateFrom(JAVA_INT, (int) credentials.byteSize());
            SystemCall.GETSOCKOPT.call(
                    descriptor.number(), SOL_SOCKET, SO_PEERCRED, credentials.address(), length.address());
            return new Peer(
                    Integer.toUnsignedLong(credentials.get(JAVA_INT, 0)),
                    Integer.toUnsignedLong(credentials.get(JAVA_INT, 4)));
        }
    }

    /// Sends one message.
    ///
    /// @throws SystemCallException if the other end is closed, or its unread messages leave no room
    public void send(byte[] message) throws SystemCallException {
        LocalMessage.send(descriptor, message, null);
    }

    /// Sends one message with a file descriptor (`SCM_RIGHTS`). The other end gets a descriptor of its own.
    ///
    /// @throws SystemCallException if the other end is closed, or there is no room, or it is not allowed
    public void send(byte[] message, Descriptor attached) throws SystemCallException {
        LocalMessage.send(descriptor, message, attached);
    }

    /// Receives the next message.
    ///
    /// @param mostBytes the longest message to accept, in bytes
    /// @return the message, or empty if none is there now
    /// @throws java.io.EOFException if the other end is closed and all its messages were received
    /// @throws IOException if the message is longer, or has more than one descriptor
    public Optional<LocalMessage> receive(int mostBytes) throws IOException {
        return LocalMessage.receive(descriptor, mostBytes);
    }

    @Override
    public void close() {
        descriptor.close();
    }
}
