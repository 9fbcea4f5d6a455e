package io.cistern.internal.threads;

import java.util.concurrent.locks.ReentrantLock;

/// A lock that a block holds: `try (HeldLock _ = lock.held()) { … }`. Needs no Java heap.
public final class HeldLock extends ReentrantLock implements AutoCloseable {
    private static final long serialVersionUID = 1;

    /// Takes the lock, which the end of the block releases.
    public HeldLock held() {
        lock();
        return this;
    }

    @Override
    public void close() {
        unlock();
    }
}
