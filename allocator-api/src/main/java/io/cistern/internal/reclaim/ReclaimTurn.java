package io.cistern.internal.reclaim;

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// Lets one thread at a time reclaim memory: threads that run out together would else take from one another what each
/// has just obtained.
///
/// It is no lock. A thread that finds another one's turn waits for its own, as long as turns end; when none has ended
/// for a bounded time, it goes on beside it: the other thread may be in a plug-in that waits for this very thread.
///
/// **Threads.** Any. The thread that began a turn ends it.
final class ReclaimTurn {
    private final Semaphore free = new Semaphore(1, true);
    private volatile @Nullable Thread owner;

    /// How many turns have ended.
    private final AtomicLong ended = new AtomicLong();

    /// Begins a turn.
    ///
    /// @param nanos how long to wait for the end of one other thread's turn
    /// @return false if one did not end in time, if the calling thread is interrupted, or if it has the turn
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
            return awaitTurn(nanos);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /// Goes on only if another thread got on meanwhile.
    private boolean awaitTurn(long nanos) throws InterruptedException {
        long seen;
        do {
            seen = ended.get();
            if (free.tryAcquire(nanos, TimeUnit.NANOSECONDS)) {
                return true;
            }
        } while (ended.get() != seen);
        return false;
    }

    void end() {
        owner = null;
        ended.incrementAndGet();
        free.release();
    }
}
