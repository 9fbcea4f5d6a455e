package io.cistern.spark;

import java.lang.foreign.MemorySegment;

/// Host memory for a task's copies. Close the block only after the last copy that uses it has
/// completed.
///
/// **Threads.** One thread at a time.
public final class HostBlock implements AutoCloseable {
    private final MemorySegment bytes;
    private final Runnable release;
    private boolean closed;

    HostBlock(MemorySegment bytes, Runnable release) {
        this.bytes = bytes;
        this.release = release;
    }

    /// Returns the memory.
    public MemorySegment bytes() {
        return bytes;
    }

    /// Gives the memory back. Closing twice does nothing.
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            release.run();
        }
    }
}
