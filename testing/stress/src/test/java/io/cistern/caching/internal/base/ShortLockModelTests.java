package io.cistern.caching.internal.base;

import io.cistern.internal.routing.Interleavings;
import org.jetbrains.lincheck.datastructures.Operation;
import org.junit.jupiter.api.Test;

/// One thread at a time is between lock and unlock, and sees what the others did there.
public class ShortLockModelTests {
    private final ShortLock lock = new ShortLock();
    private int count;

    /// The next number, each once.
    @Operation
    public int next() {
        lock.lock();
        try {
            return ++count;
        } finally {
            lock.unlock();
        }
    }

    /// The same, for who does not give up.
    @Operation
    public int nextByTrying() {
        while (!lock.tryLock()) {
            Thread.onSpinWait();
        }
        try {
            return ++count;
        } finally {
            lock.unlock();
        }
    }

    @Test
    void noNumberComesTwiceInAnyInterleaving() {
        Interleavings.explore(ShortLockModelTests.class, 5);
    }

    @Test
    void noNumberComesTwiceUnderRealThreads() {
        Interleavings.race(ShortLockModelTests.class);
    }
}
