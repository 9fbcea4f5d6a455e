package io.cistern.async;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/// Makes threads call the driver one at a time for a device, while several threads call.
///
/// **Idea.** Threads that allocate from pools at the same time contend for a lock of the driver, where each
/// sleeps until it is woken. With a Java mutex in front, the running thread calls again before the woken thread
/// is scheduled, so it makes many pairs of an allocation and a free for each wake-up. In exchange a thread may
/// wait for some tens of such pairs of other threads. A lock also costs time without contention, so a single
/// thread uses none.
///
/// **Steps.**
/// 1. Every [#CALLS_BETWEEN_LOOKS] calls, the calling thread checks which thread looked last. If it was another
///    thread, threads take turns from then on.
/// 2. When a thread has had [#CALLS_ALONE] turns in a row and nobody waits, threads stop taking turns.
/// 3. A thread that waits longer than any call takes proceeds without a turn, and threads stop taking turns
///    for good: a stack overflow may have kept a thread from ending its own turn.
///
/// **Threads.** Any. The numbers are plain: a race only delays a look.
final class DriverMutex {
    /// A look is a read and a write, so it is cheap enough to notice soon that threads start to compete.
    static final int CALLS_BETWEEN_LOOKS = 64;

    /// Enough turns to show that nobody competes.
    static final int CALLS_ALONE = 1024;

    private static final long PATIENCE_NANOS = 5_000_000_000L;
    private static final long NOBODY = 0;

    /// Unfair on purpose: the running thread should get the lock before the woken one.
    private final ReentrantLock lock = new ReentrantLock();

    private final long patienceNanos;

    private long last = NOBODY;

    /// Whether a thread failed to end its turn.
    private volatile boolean stuck;

    /// How many turns in a row the last thread has had. Guarded by the lock.
    private int inARow;

    DriverMutex() {
        this(PATIENCE_NANOS);
    }

    DriverMutex(long patienceNanos) {
        this.patienceNanos = patienceNanos;
    }

    /// Notes that the calling thread calls.
    ///
    /// @return whether it should take turns, because another thread called at the last look
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
    /// @return false if the wait gave no turn: the caller goes on without one and must not end one
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
            Thread.currentThread().interrupt(); // an interrupt does not stop an allocation
            return false;
        }
    }

    /// Ends a turn.
    ///
    /// @return whether threads can stop taking turns
    boolean end() {
        boolean alone = stuck || (inARow >= CALLS_ALONE && !lock.hasQueuedThreads());
        if (alone) {
            inARow = 0;
        }
        lock.unlock();
        return alone;
    }
}
