package io.cistern.handles;

import java.util.concurrent.atomic.AtomicInteger;

/// Records whether a pool is open, and counts the times when threads have to set their streams again.
///
/// OPEN → CLOSING (open leases go on, nothing new begins) → CLOSED, or OPEN again.
///
/// **Threads.** Any.
final class PoolState {
    private enum Phase {
        OPEN,
        CLOSING,
        CLOSED
    }

    private final String library;
    private volatile Phase phase = Phase.OPEN;
    private final AtomicInteger changes = new AtomicInteger();

    PoolState(String library) {
        this.library = library;
    }

    boolean isClosed() {
        return phase == Phase.CLOSED;
    }

    void beginClose() {
        phase = Phase.CLOSING;
    }

    /// Opens the pool again, after a close that failed.
    void reopen() {
        phase = Phase.OPEN;
    }

    void close() {
        phase = Phase.CLOSED;
    }

    /// Throws an exception unless the pool is open.
    void requireOpen() {
        if (phase != Phase.OPEN) {
            throw new IllegalStateException("the pool of handles of " + library + " is closed");
        }
    }

    int changes() {
        return changes.get();
    }

    /// Makes threads that are setting a stream set it again. Called before anything that they may have set
    /// is taken away.
    void change() {
        changes.incrementAndGet();
    }
}
