package io.cistern.spark;

import java.lang.foreign.MemorySegment;

/// Host memory of a task, through which it copies. No copy uses it any more when it is closed.
///
/// **Threads.** One at a time.
public final class HostBlock implements AutoCloseable {
    private final MemorySegment bytes;
    private final Runnable release;
    private boolean closed;

    HostBlock(MemorySegment bytes, Runnable release) {
        this.bytes = bytes;
        this.release = release;
    }

    /// Returns its memory.
    public MemorySegment bytes() {
        return bytes;
    }

    /// Gives it back. Closing twice does nothing.
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            release.run();
        }
    }
}
