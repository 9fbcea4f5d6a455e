package io.cistern.internal.reclaim;

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Lets one thread at a time reclaim memory: threads that run out together would else take from one another what each
/// has just obtained.
///
/// It is no lock. A thread that finds another one's turn waits for its end, but only for a bounded time, and then goes
/// on beside it: the other thread may be in a plug-in that waits for this very thread.
///
/// **Threads.** Any. The thread that began a turn ends it.
final class ReclaimTurn {
    private final Semaphore free = new Semaphore(1);
    private volatile @Nullable Thread owner;

    /// Begins a turn.
    ///
    /// @param nanos how long to wait for the end of another thread's turn
    /// @return false if that did not end in time, if the calling thread is interrupted, or if it has the turn
    ///     already: then there is nothing to [end][#end]
    boolean begin(long nanos) {
        Thread caller = Thread.currentThread();
        if (caller.equals(owner) || !(free.tryAcquire() || awaitEnd(nanos))) {
            return false;
        }
        owner = caller;
        return true;
    }

    private boolean awaitEnd(long nanos) {
        try {
            return free.tryAcquire(nanos, TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /// Ends the calling thread's turn.
    void end() {
        owner = null;
        free.release();
    }
}
