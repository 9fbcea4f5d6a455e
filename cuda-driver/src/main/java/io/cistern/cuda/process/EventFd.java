package io.cistern.cuda.process;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;

/// A descriptor that becomes readable when [#wake] is called, and stays readable (`eventfd`); ends a wait in
/// [Poll].
public final class EventFd implements AutoCloseable {
    /// `EFD_CLOEXEC | EFD_NONBLOCK`
    private static final int FLAGS = 0x80000 | 0x800;

    private final Descriptor descriptor;

    /// Creates a descriptor that is not readable yet.
    ///
    /// @throws SystemCallException if the system refuses
    public EventFd() throws SystemCallException {
        descriptor = new Descriptor((int) SystemCall.EVENTFD2.call(0, FLAGS));
    }

    /// Returns the descriptor to wait for.
    public Descriptor descriptor() {
        return descriptor;
    }

    /// Makes the descriptor readable.
    public void wake() {
        try (Arena arena = Arena.ofConfined()) {
            SystemCall.WRITE.call(
                    descriptor.number(),
                    arena.allocateFrom(ValueLayout.JAVA_LONG, 1).address(),
                    Long.BYTES);
        } catch (SystemCallException full) {
            // It is readable already.
            assert full.errno() == SystemCallException.EAGAIN : full;
        }
    }

    @Override
    public void close() {
        descriptor.close();
    }
}
