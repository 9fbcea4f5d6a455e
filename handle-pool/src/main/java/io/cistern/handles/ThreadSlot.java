package io.cistern.handles;

import java.lang.ref.WeakReference;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// Holds one thread's handle of one device, and the stream that is set in it.
///
/// **Threads.** The owner sets streams and takes handles. Any thread may clear [#ready] at any time, and may
/// take the handle once the owner has ended or the pool is closed.
///
/// @param <H> the handle
final class ThreadSlot<H> {
    /// Whether the owner is a virtual thread.
    final boolean virtual;

    /// Counts the owner's handles; null for a platform thread.
    final LeaseLimit.@Nullable Holder holder;

    /// The owner's name, for people.
    final String name;

    /// Weak, so that a thread that is no longer reachable counts as ended.
    private final WeakReference<Thread> owner;

    /// The handle, if [#stream] is set in it; null if the owner has to set a stream first.
    private volatile @Nullable H ready;

    /// Written before [#ready].
    private long stream;

    private final AtomicReference<@Nullable PooledHandle<H>> held = new AtomicReference<>();
    private final AtomicInteger leases = new AtomicInteger();

    /// The time when the owner took its handle, by [System#nanoTime].
    private volatile long since;

    /// Creates the slot of the calling thread.
    ThreadSlot() {
        Thread current = Thread.currentThread();
        owner = new WeakReference<>(current);
        virtual = current.isVirtual();
        holder = virtual ? LeaseLimit.Holder.current() : null;
        name = current.getName().isEmpty() ? "thread " + current.threadId() : current.getName();
    }

    /// Returns the handle if a stream is set in it; else null.
    @Nullable
    H ready(long wanted) {
        H handle = ready;
        return handle != null && stream == wanted ? handle : null;
    }

    /// Publishes that a stream is set.
    void publish(H handle, long set) {
        stream = set;
        ready = handle;
    }

    /// Makes the owner set a stream again before it uses its handle.
    void unpublish() {
        ready = null;
    }

    /// Does the same for a stream that ends. An owner that is about to set another stream may have to set that
    /// again.
    void unpublish(long ended) {
        if (stream == ended) {
            ready = null;
        }
    }

    @Nullable
    PooledHandle<H> held() {
        return held.get();
    }

    void hold(PooledHandle<H> taken) {
        since = System.nanoTime();
        held.set(taken);
    }

    /// Takes the handle from the owner.
    ///
    /// @return null if the owner has none, or another thread took it
    @Nullable
    PooledHandle<H> release() {
        ready = null;
        return held.getAndSet(null);
    }

    /// Called after the handle of a virtual thread was given back.
    void leaveLimit() {
        if (holder != null) {
            holder.leave();
        }
    }

    /// Returns the number of open leases of the owner.
    int leases() {
        return leases.get();
    }

    void enterLease() {
        leases.incrementAndGet();
    }

    /// Counts a lease that ends.
    ///
    /// @return whether no lease is open any more
    boolean leaveLease() {
        return leases.decrementAndGet() == 0;
    }

    boolean isOfCurrentThread() {
        return owner.refersTo(Thread.currentThread());
    }

    /// Returns whether the owner has ended. If so, all its writes happened before this call returns.
    boolean isOwnerEnded() {
        Thread alive = owner.get();
        return alive == null || !alive.isAlive();
    }

    long nanosSinceTaken() {
        return System.nanoTime() - since;
    }
}
