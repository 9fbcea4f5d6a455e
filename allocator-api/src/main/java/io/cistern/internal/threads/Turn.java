package io.cistern.internal.threads;

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// Lets one thread at a time do something.
///
/// It is not a lock. A thread waits for its turn while other turns keep ending. If none has ended for a
/// bounded time, the thread goes on without a turn, since the other thread may be in a plug-in or an
/// observer that waits for this very thread.
///
/// **Threads.** Any. The thread that began a turn ends it.
public final class Turn {
    private final Semaphore free = new Semaphore(1, true);
    private volatile @Nullable Thread owner;

    /// The number of turns that have ended.
    private final AtomicLong ended = new AtomicLong();

    /// Begins a turn.
    ///
    /// @param nanos how long to wait until one other thread's turn ends
    /// @return false if one did not end in time, if the calling thread is interrupted, or if it has the turn
    ///     already: then there is nothing to [end][#end]
    public boolean begin(long nanos) {
        Thread caller = Thread.currentThread();
        if (caller.equals(owner) || !(free.tryAcquire() || RestingThreads.during(() -> awaitEnd(nanos)))) {
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

    /// Waits again only if another turn has ended since.
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

    /// Ends the calling thread's turn.
    public void end() {
        owner = null;
        ended.incrementAndGet();
        free.release();
    }
}
