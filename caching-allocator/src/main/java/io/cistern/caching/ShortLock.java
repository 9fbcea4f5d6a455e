package io.cistern.caching;

import java.io.Serial;
import java.util.concurrent.locks.ReentrantLock;

/// A lock that is held for less time than it takes to put a thread to sleep and wake it again, some
/// microseconds: who finds it held looks on for a while before it sleeps.
final class ShortLock extends ReentrantLock {
    @Serial
    private static final long serialVersionUID = 1;

    /// Pauses; a pass of the lock takes as long as some ten of them.
    private static final int PATIENCE = 100;

    @Override
    public void lock() {
        for (int tries = 0; tries < PATIENCE; tries++) {
            if (tryLock()) {
                return;
            }
            Thread.onSpinWait();
        }
        super.lock();
    }
}
