package io.cistern.caching.internal.base;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/// A lock that is held for less time than it takes to put a thread to sleep and wake it again, some
/// microseconds, and never across a driver call.
///
/// 1. Taken by one compare-and-set, given back by one release store: half the price of a `ReentrantLock`, whose
/// store is a full fence, so that it can see who waits.
/// 2. Who finds it held looks on for a while. Then its owner has lost its processor; so the others sleep, for a time
/// and not until they are woken, because nobody knows of them.
///
/// Not reentrant. Not fair: a short lock's waiters are few.
public final class ShortLock {
    /// Pauses; a pass of the lock takes as long as some ten of them.
    private static final int PATIENCE = 100;
    /// As long as a thread takes to fall asleep and wake up at all.
    private static final long NAP_NANOS = 50_000;

    private static final VarHandle HELD;

    static {
        try {
            HELD = MethodHandles.lookup().findVarHandle(ShortLock.class, "held", boolean.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    @SuppressWarnings("unused") // by HELD
    private boolean held;

    public void lock() {
        if (!tryLock()) {
            while (!tryLockSoon()) {
                LockSupport.parkNanos(this, NAP_NANOS);
            }
        }
    }

    boolean tryLock() {
        return HELD.compareAndSet(this, false, true);
    }

    /// Takes it, unless it is held for longer than a pass of it takes.
    public boolean tryLockSoon() {
        for (int tries = 0; tries < PATIENCE; tries++) {
            if (!(boolean) HELD.getOpaque(this) && tryLock()) {
                return true;
            }
            Thread.onSpinWait();
        }
        return false;
    }

    public void unlock() {
        HELD.setRelease(this, false);
    }
}
