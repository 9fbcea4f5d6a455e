package io.cistern.handles;

import java.lang.ref.WeakReference;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// Holds one thread's handle of one device, and the stream that is set in it.
///
/// **Threads.** The owner sets streams and takes handles. Any thread may clear [#ready] at any time, and may
/// [release][#release] the handle once the owner has ended or the pool is closed.
///
/// @param <H> the handle
final class ThreadSlot<H> {
    /// The owner's place among virtual threads; null for a platform thread.
    final Places.@Nullable OfThread place;

    /// The owner's name, for messages.
    final String name;

    /// The number of open leases, written only by the owner.
    final AtomicInteger leases = new AtomicInteger();

    final AtomicReference<@Nullable PooledHandle<H>> held = new AtomicReference<>();

    /// Weak, so that a thread that is no longer reachable counts as ended.
    private final WeakReference<Thread> owner;

    /// The handle, if [#stream] is set in it; null if the owner has to set a stream first.
    private volatile @Nullable H ready;

    /// Written before [#ready].
    private long stream;

    /// Creates the slot of the calling thread.
    ThreadSlot() {
        Thread current = Thread.currentThread();
        owner = new WeakReference<>(current);
        place = current.isVirtual() ? Places.OfThread.current() : null;
        name = current.getName().isEmpty() ? "thread " + current.threadId() : current.getName();
    }

    boolean isVirtual() {
        return place != null;
    }

    /// Returns the handle if a stream is set in it; else null.
    @Nullable
    H ready(long wanted) {
        H handle = ready;
        return handle != null && stream == wanted ? handle : null;
    }

    /// Publishes which stream is set.
    ///
    /// @param handle null if the owner has to set a stream before it uses its handle again
    void publish(@Nullable H handle, long set) {
        stream = set;
        ready = handle;
    }

    /// If the owner's stream is the one that ends, makes the owner set a stream again. An owner that is about to
    /// set another stream may have to set that again.
    void unpublish(long ended) {
        if (stream == ended) {
            ready = null;
        }
    }

    /// Takes the handle from the owner.
    ///
    /// @return null if the owner has none, or another thread took it
    @Nullable
    PooledHandle<H> release() {
        ready = null;
        return held.getAndSet(null);
    }

    /// Called after the handle was given back, or if none was taken.
    void leavePlace() {
        if (place != null) {
            place.leave();
        }
    }

    boolean isOfCurrentThread() {
        return owner.refersTo(Thread.currentThread());
    }

    /// Returns whether the owner has ended. If so, all its writes happened before this call returns.
    boolean isOwnerEnded() {
        Thread alive = owner.get();
        return alive == null || !alive.isAlive();
    }
}
