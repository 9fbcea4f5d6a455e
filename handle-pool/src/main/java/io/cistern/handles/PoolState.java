package io.cistern.handles;

import java.util.concurrent.atomic.AtomicInteger;

/// Whether a pool is open, and how often the streams that threads have set became out of date.
///
/// OPEN → CLOSING, in which open leases go on and nothing new begins → CLOSED, or OPEN again.
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

    /// It could not be closed.
    void reopen() {
        phase = Phase.OPEN;
    }

    void close() {
        phase = Phase.CLOSED;
    }

    /// Throws unless something new may begin.
    void requireOpen() {
        if (phase != Phase.OPEN) {
            throw new IllegalStateException("the pool of handles of " + library + " is closed");
        }
    }

    int changes() {
        return changes.get();
    }

    /// Has threads that are setting a stream set it again. Called before what they have set is taken away.
    void change() {
        changes.incrementAndGet();
    }
}
