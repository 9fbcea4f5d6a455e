package io.cistern.cuda.process;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicBoolean;

/// An open file descriptor of this process, by its number. All descriptors made here are close-on-exec.
///
/// **Threads.** Any; concurrent calls of [#close] close it once.
public final class Descriptor implements AutoCloseable {
    private static final int F_SETFD = 2;
    private static final int F_GETFL = 3;
    private static final int O_ACCMODE = 3;
    private static final int O_RDONLY = 0;
    private static final int F_DUPFD_CLOEXEC = 1030;
    private static final int FD_CLOEXEC = 1;
    private static final int MFD_CLOEXEC = 1;

    private final int number;
    private final AtomicBoolean closed = new AtomicBoolean();

    /// Takes ownership of a descriptor.
    public Descriptor(int number) {
        this.number = number;
    }

    /// Creates anonymous memory that processes can share, of 0 bytes at first (`memfd_create`).
    ///
    /// @param label the name that `/proc` shows for it
    /// @throws SystemCallException if the system refuses
    public static Descriptor ofMemory(String label) throws SystemCallException {
        try (Arena arena = Arena.ofConfined()) {
            return new Descriptor(
                    (int) SystemCall.MEMFD_CREATE.call(arena.allocateFrom(label).address(), MFD_CLOEXEC));
        }
    }

    /// Returns the number of the descriptor.
    public int number() {
        return number;
    }

    /// Returns another descriptor of the same open file (`F_DUPFD_CLOEXEC`).
    ///
    /// @throws SystemCallException if this one is closed, or the process has too many
    public Descriptor duplicate() throws SystemCallException {
        return new Descriptor((int) SystemCall.FCNTL.call(number, F_DUPFD_CLOEXEC, 0));
    }

    /// Makes this descriptor refer to the other one's open file (`dup3`), and closes its former file.
    ///
    /// @throws SystemCallException if the other one is closed
    public void replaceBy(Descriptor other) throws SystemCallException {
        SystemCall.DUP3.call(other.number, number, 0);
    }

    /// Returns whether the file is open for writing. Standard output that was closed when the process began is not: the
    /// JVM has then opened a file of its own under that number.
    public boolean isWritable() {
        try {
            return (SystemCall.FCNTL.call(number, F_GETFL, 0) & O_ACCMODE) != O_RDONLY;
        } catch (SystemCallException notOpen) {
            return false;
        }
    }

    /// Writes all bytes of a range. After a partial write it continues with the rest.
    ///
    /// @param from index of the first byte
    /// @param length number of bytes
    /// @throws SystemCallException if the system refuses; some bytes may have been written
    public void write(byte[] bytes, int from, int length) throws SystemCallException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment text = arena.allocate(Math.max(1, length));
            MemorySegment.copy(bytes, from, text, ValueLayout.JAVA_BYTE, 0, length);
            for (long written = 0; written < length; ) {
                long more = SystemCall.WRITE.call(number, text.address() + written, length - written);
                if (more == 0) { // it would loop forever
                    throw new SystemCallException(SystemCall.WRITE, SystemCallException.EAGAIN);
                }
                written += more;
            }
        }
    }

    /// Sets close-on-exec.
    ///
    /// @return this
    /// @throws IllegalStateException if this descriptor is not open
    public Descriptor closedOnExec() {
        try {
            SystemCall.FCNTL.call(number, F_SETFD, FD_CLOEXEC);
            return this;
        } catch (SystemCallException notOpen) {
            throw new IllegalStateException("descriptor " + number, notOpen);
        }
    }

    /// Closes the descriptor. Closing twice does nothing.
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        try {
            SystemCall.CLOSE.call(number);
        } catch (SystemCallException alreadyGone) {
            // The descriptor is closed either way.
            assert alreadyGone.errno() != 0;
        }
    }

    @Override
    public String toString() {
        return "descriptor " + number;
    }
}
