package io.cistern.handles;

import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A limited number of places, for which threads wait in order of arrival.
///
/// **Threads.** Any.
final class Places {
    /// The place of one virtual thread. The thread has one place for all its handles, of any pool and device; it
    /// belongs to the pool of the first handle. So a thread that already has a handle never waits for a place, and
    /// leases of several pools and devices can't block each other.
    ///
    /// **Threads.** The thread itself; any thread once that has ended.
    static final class OfThread {
        private static final ThreadLocal<OfThread> CURRENT = ThreadLocal.withInitial(OfThread::new);

        private final AtomicInteger handles = new AtomicInteger();
        private volatile @Nullable Places entered;

        private OfThread() {}

        /// Returns the place of the calling thread.
        static OfThread current() {
            return CURRENT.get();
        }

        /// Called before the thread takes a handle of a pool.
        void enter(Places ofPool, Consumer<Places> entering) {
            if (handles.get() == 0) {
                entering.accept(ofPool);
                entered = ofPool;
            }
            handles.incrementAndGet();
        }

        /// Called after the thread returned a handle. Needs no Java heap.
        void leave() {
            Places counting = entered;
            if (handles.decrementAndGet() == 0 && counting != null) {
                counting.leave();
            }
        }
    }

    private final Semaphore free;

    /// How often a place was left.
    private final AtomicLong exits = new AtomicLong();

    private boolean turningAway;

    Places(int count) {
        free = new Semaphore(Math.min(count, Integer.MAX_VALUE - 1), true); // with room for #turnAway
    }

    /// Takes a place if one is free and nobody waits for it.
    boolean tryEnter() {
        return !free.hasQueuedThreads() && free.tryAcquire();
    }

    /// Takes a free place, even if threads wait.
    boolean tryEnterFirst() {
        return free.tryAcquire();
    }

    /// Waits for a place.
    ///
    /// @param maxWait how long it waits while no other thread leaves a place
    /// @return false if that time is over
    boolean enter(Duration maxWait) throws InterruptedException {
        long seen;
        do { // each time another thread has left meanwhile
            seen = exits.get();
            if (free.tryAcquire(TimeUnit.NANOSECONDS.convert(maxWait), TimeUnit.NANOSECONDS)) {
                return true;
            }
        } while (exits.get() != seen);
        return false;
    }

    void leave() {
        exits.incrementAndGet();
        free.release();
    }

    /// Lets all waiting threads in, one after the other, by adding one place: each finds the pool closing, and
    /// leaves. Called only by the closing thread.
    ///
    /// @param away false to take that place back, before the pool is open again: until then each thread that
    ///     enters leaves, and one of them may have that place
    void turnAway(boolean away) {
        if (away != turningAway) {
            turningAway = away;
            if (away) {
                free.release();
            } else {
                free.acquireUninterruptibly();
            }
        }
    }
}
