package io.cistern.async;

import java.util.concurrent.locks.ReentrantLock;

/// Has threads call the driver one at a time for a device, while there are several.
///
/// **Idea.** Threads that allocate from pools at the same time meet at a lock of the driver's, where each sleeps and is
/// woken: 16 threads take 4.0 µs a pair so on an H200's host, each waiting for a wake-up. If they sleep at a lock of
/// Java's before, they take 1.6 to 1.8 µs: there who runs comes again before who was woken has begun to run, so that
/// many pairs go by for each wake-up. In exchange a thread may wait for some tens of pairs of others. A lock costs
/// some 20 ns where nobody contends, so one thread has none.
///
/// **Steps.** 1. Each [#CALLS_BETWEEN_LOOKS] calls somebody looks who looked last; if it was another thread, turns are
/// taken from then on. 2. Who has had [#CALLS_ALONE] turns in a row, while nobody waited, ends that.
///
/// **Threads.** Any. The numbers are plain: a race puts a look off.
final class Turns {
    /// A look is a read and a write; threads that come together are seen within some ten microseconds.
    static final int CALLS_BETWEEN_LOOKS = 64;

    /// Less than a millisecond.
    static final int CALLS_ALONE = 1024;

    private static final long NOBODY = 0;

    /// Not fair: that is the gain.
    private final ReentrantLock lock = new ReentrantLock();

    private long last = NOBODY;

    /// How many turns the last one has had in a row. Guarded by the lock.
    private int inARow;

    /// Notes that the calling thread calls.
    ///
    /// @return whether another one did, the last time somebody looked
    boolean othersCall() {
        long thread = Thread.currentThread().threadId();
        boolean others = last != NOBODY && last != thread;
        last = thread;
        return others;
    }

    void begin() {
        lock.lock();
        inARow = othersCall() ? 0 : inARow + 1;
    }

    /// Ends a turn.
    ///
    /// @return whether turns need not be taken any more
    boolean end() {
        boolean alone = inARow >= CALLS_ALONE && !lock.hasQueuedThreads();
        if (alone) {
            inARow = 0;
        }
        lock.unlock();
        return alone;
    }
}
