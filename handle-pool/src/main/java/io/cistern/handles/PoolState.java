package io.cistern.handles;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/// Whether a pool is open, and how often the streams that threads have set became out of date.
///
/// **Threads.** Any.
final class PoolState {
    private final String library;
    private final AtomicBoolean closed = new AtomicBoolean();
    private final AtomicInteger changes = new AtomicInteger();

    PoolState(String library) {
        this.library = library;
    }

    /// Begins to close.
    ///
    /// @return false if somebody else did
    boolean beginClose() {
        return !closed.getAndSet(true);
    }

    /// Is open again: it could not be closed.
    void reopen() {
        closed.set(false);
    }

    /// Throws if the pool is closed.
    void requireOpen() {
        if (closed.get()) {
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
