package io.cistern;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/// A pause that takes the exclusive side of a lock. A paused thread gives up what it holds of the lock.
record LockPause(ReentrantReadWriteLock work) implements Listeners.WorkPause {
    @Override
    public Optional<Registration> begin(int device, Duration atMost) {
        Optional<Registration> end = Optional.of(work.writeLock()::unlock); // before the lock is held
        return isTaken(atMost) ? end : Optional.empty();
    }

    private boolean isTaken(Duration atMost) {
        try {
            return work.writeLock().tryLock(atMost.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return work.writeLock().tryLock();
        }
    }

    @Override
    public Registration rest() {
        int shared = work.getReadHoldCount();
        int exclusive = work.getWriteHoldCount();
        Registration end = () -> {
            lock(work.writeLock(), exclusive); // first: the shared side can't be upgraded to it
            lock(work.readLock(), shared);
        };
        unlock(work.readLock(), shared);
        unlock(work.writeLock(), exclusive);
        return end;
    }

    private static void unlock(Lock side, int times) {
        for (int i = 0; i < times; i++) {
            side.unlock();
        }
    }

    private static void lock(Lock side, int times) {
        for (int i = 0; i < times; i++) {
            side.lock();
        }
    }
}
