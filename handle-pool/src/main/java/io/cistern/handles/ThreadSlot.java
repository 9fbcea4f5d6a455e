package io.cistern.handles;

import java.lang.ref.WeakReference;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// What one thread has of one device: its handle, and which stream is set in it.
///
/// **Threads.** The owner sets streams and takes handles. Any thread may take [#ready] away at any time, and the
/// handle once the owner has ended or the pool is closed.
///
/// @param <H> the handle
final class ThreadSlot<H> {
    /// Whether the owner is a virtual thread.
    final boolean virtual;

    /// The owner's, for people.
    final String name;

    /// Weak, so that a thread that nobody keeps counts as ended.
    private final WeakReference<Thread> owner;

    /// The handle, if [#stream] is set in it; else the owner sets it first.
    private volatile @Nullable H ready;

    /// Written before [#ready].
    private long stream;

    private final AtomicReference<@Nullable PooledHandle<H>> held = new AtomicReference<>();
    private final AtomicInteger leases = new AtomicInteger();

    /// When the owner took its handle, by [System#nanoTime].
    private volatile long since;

    /// Of the calling thread.
    ThreadSlot() {
        Thread current = Thread.currentThread();
        owner = new WeakReference<>(current);
        virtual = current.isVirtual();
        name = current.getName().isEmpty() ? "thread " + current.threadId() : current.getName();
    }

    /// The handle, if a stream is set in it; else null.
    @Nullable
    H ready(long wanted) {
        H handle = ready;
        return handle != null && stream == wanted ? handle : null;
    }

    /// Says that a stream is set.
    void publish(H handle, long set) {
        stream = set;
        ready = handle;
    }

    /// Has the owner set a stream again before it uses its handle.
    void unpublish() {
        ready = null;
    }

    /// The same for a stream that ends. Where the owner is about to set another one, it sets that again.
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
    /// @return null if it has none, or another thread took it
    @Nullable
    PooledHandle<H> release() {
        ready = null;
        return held.getAndSet(null);
    }

    /// How many leases of the owner are open.
    int leases() {
        return leases.get();
    }

    void enterLease() {
        leases.incrementAndGet();
    }

    /// Counts a lease that ends.
    ///
    /// @return whether none is open any more
    boolean leaveLease() {
        return leases.decrementAndGet() == 0;
    }

    boolean isOfCurrentThread() {
        return owner.refersTo(Thread.currentThread());
    }

    /// Whether the owner has ended. Seeing that orders all that it wrote before what the caller does next.
    boolean isOwnerEnded() {
        Thread alive = owner.get();
        return alive == null || !alive.isAlive();
    }

    long nanosSinceTaken() {
        return System.nanoTime() - since;
    }
}
