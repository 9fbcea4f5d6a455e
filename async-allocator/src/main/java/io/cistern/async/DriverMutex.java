package io.cistern.async;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/// Has threads call the driver one at a time for a device, while there are several.
///
/// **Idea.** Threads that allocate from pools at the same time meet at a lock of the driver's, where each sleeps
/// and is woken, each waiting for a wake-up. If they sleep at a lock of Java's before, who runs comes again
/// before who was woken has begun to run, so that many pairs go by for each wake-up. In exchange a thread may
/// wait for some tens of pairs of others. A lock costs time where nobody contends, too, so one thread has none.
///
/// **Steps.** 1. Each [#CALLS_BETWEEN_LOOKS] calls somebody looks who looked last; if it was another thread,
/// turns are taken from then on. 2. Who has had [#CALLS_ALONE] turns in a row, while nobody waited, ends that. 3.
/// Who waits for longer than any call takes goes on without a turn, and nobody takes turns any more: a stack
/// overflow may have kept a thread from ending its own.
///
/// **Threads.** Any. The numbers are plain: a race puts a look off.
final class DriverMutex {
    /// A look is a read and a write; threads that come together are seen within some ten microseconds.
    static final int CALLS_BETWEEN_LOOKS = 64;

    /// Less than a millisecond.
    static final int CALLS_ALONE = 1024;

    private static final long PATIENCE_NANOS = 5_000_000_000L;
    private static final long NOBODY = 0;

    /// Not fair: that is the gain.
    private final ReentrantLock lock = new ReentrantLock();

    private final long patienceNanos;

    private long last = NOBODY;

    /// Whether a turn did not end.
    private volatile boolean stuck;

    /// How many turns the last one has had in a row. Guarded by the lock.
    private int inARow;

    DriverMutex() {
        this(PATIENCE_NANOS);
    }

    DriverMutex(long patienceNanos) {
        this.patienceNanos = patienceNanos;
    }

    /// Notes that the calling thread calls.
    ///
    /// @return whether it should take turns, since another one did, the last time somebody looked
    boolean areWanted() {
        return othersCall() && !stuck;
    }

    private boolean othersCall() {
        long thread = Thread.currentThread().threadId();
        boolean others = last != NOBODY && last != thread;
        last = thread;
        return others;
    }

    /// Waits for a turn.
    ///
    /// @return false if there was none: go on without, and end none
    boolean begin() {
        if (stuck || !(lock.tryLock() || waits())) {
            return false;
        }
        inARow = othersCall() ? 0 : inARow + 1;
        return true;
    }

    private boolean waits() {
        try {
            boolean came = lock.tryLock(patienceNanos, TimeUnit.NANOSECONDS);
            stuck |= !came;
            return came;
        } catch (InterruptedException told) {
            Thread.currentThread().interrupt(); // whoever allocates is not to be stopped
            return false;
        }
    }

    /// Ends a turn.
    ///
    /// @return whether turns need not be taken any more
    boolean end() {
        boolean alone = stuck || (inARow >= CALLS_ALONE && !lock.hasQueuedThreads());
        if (alone) {
            inARow = 0;
        }
        lock.unlock();
        return alone;
    }
}
