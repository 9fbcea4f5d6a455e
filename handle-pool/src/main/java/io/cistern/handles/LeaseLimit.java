package io.cistern.handles;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Limits how many virtual threads have handles of a pool at once. Others wait in the order in which they came.
///
/// A virtual thread that already has a handle, of any pool and device, does not wait. So no thread that has a
/// handle waits here, and leases of several devices and pools can't block each other.
///
/// **Threads.** Any.
final class LeaseLimit {
    /// Counts the handles that one virtual thread has in all pools. The pool of the first one has counted the
    /// thread until it has none.
    ///
    /// **Threads.** The thread itself; any thread once that has ended.
    static final class Holder {
        private static final ThreadLocal<Holder> CURRENT = ThreadLocal.withInitial(Holder::new);

        private final AtomicInteger handles = new AtomicInteger();
        private volatile @Nullable LeaseLimit limit;

        private Holder() {}

        /// Returns that of the calling thread.
        static Holder current() {
            return CURRENT.get();
        }

        /// Called before the thread takes a handle of a pool.
        ///
        /// @throws HandleException if it can't have one in time
        void enter(LeaseLimit ofPool, DeviceHandles<?> waits) {
            if (handles.get() == 0) {
                ofPool.enter(waits);
                limit = ofPool;
            }
            handles.incrementAndGet();
        }

        /// Called after a handle of the thread was given back. Needs no Java heap.
        void leave() {
            LeaseLimit counting = limit;
            if (handles.decrementAndGet() == 0 && counting != null) {
                counting.leave();
            }
        }
    }

    private final String library;
    private final HandlePoolOptions options;
    private final PoolState state;
    private final int most;
    private final ReentrantLock lock = new ReentrantLock();

    /// The conditions of the waiting threads, the longest wait first; guarded by the lock, as are the next two
    /// fields. A linked queue stays whole if the Java heap is full.
    private final Queue<Condition> waiting = new ConcurrentLinkedQueue<>();

    private int inside;

    /// How often a thread left.
    private long exits;

    LeaseLimit(String library, HandlePoolOptions options, PoolState state) {
        this.library = library;
        this.options = options;
        this.state = state;
        this.most = Math.min(options.maxVirtualThreads(), options.maxHandles());
    }

    private void enter(DeviceHandles<?> waits) {
        lock.lock();
        try {
            if (inside == most || !waiting.isEmpty()) {
                Condition turn = lock.newCondition();
                waits.during(() -> await(turn));
            }
            inside++;
        } finally {
            lock.unlock();
        }
    }

    private @Nullable Void await(Condition turn) throws InterruptedException {
        waiting.add(turn);
        try {
            while (inside == most || !turn.equals(waiting.peek())) { // ends: a thread left since, or this throws
                state.requireOpen();
                long seen = exits;
                if (turn.awaitNanos(HandlePoolOptions.nanos(options.maxWait())) <= 0 && exits == seen) {
                    throw new HandleException(most + " virtual threads have leases of handles of " + library
                            + ", as many as may at once, and none ended in " + options.maxWait()
                            + ": set a higher maxVirtualThreads, or close leases before a thread waits for others");
                }
            }
        } finally {
            waiting.remove(turn);
            signalFirst();
        }
        return null;
    }

    private void signalFirst() {
        Condition first = waiting.peek();
        if (first != null) {
            first.signal();
        }
    }

    private void leave() {
        lock.lock();
        try {
            inside--;
            exits++;
            signalFirst();
        } finally {
            lock.unlock();
        }
    }

    /// Wakes waiting threads, so that they notice that the pool is closing.
    void wakeAll() {
        lock.lock();
        try {
            waiting.forEach(Condition::signal);
        } finally {
            lock.unlock();
        }
    }
}
