package io.cistern.caching.internal.base;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/// A lock for critical sections that take less time than putting a thread to sleep and waking it, and that
/// never make a driver call.
///
/// 1. It is taken by one compare-and-set and released by one release store. A `ReentrantLock` costs more:
///    its releasing store is a full fence, so that it sees waiters.
/// 2. A thread that finds it held spins for a while. If it is still held, its owner has probably lost its
///    processor; the thread then sleeps for a fixed time, because the lock keeps no list of waiters to wake.
///
/// Not reentrant. Not fair: a short lock has few waiters.
public final class ShortLock implements AutoCloseable {
    /// Pauses before a thread sleeps: several times the time for which the lock is usually held.
    private static final int PATIENCE = 100;
    /// About the time that a thread needs to fall asleep and wake up.
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

    /// Takes the lock, unless it stays held for longer than usual.
    public boolean tryLockSoon() {
        for (int tries = 0; tries < PATIENCE; tries++) {
            if (!(boolean) HELD.getOpaque(this) && tryLock()) {
                return true;
            }
            Thread.onSpinWait();
        }
        return false;
    }

    /// Takes the lock for a `try` statement, which releases it.
    public ShortLock hold() {
        lock();
        return this;
    }

    @Override
    public void close() {
        unlock();
    }

    public void unlock() {
        HELD.setRelease(this, false);
    }
}
