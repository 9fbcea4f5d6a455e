package io.cistern.caching;

import io.cistern.cuda.process.ProcessFence;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.WeakReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Who is inside a thread cache: one thread at a time.
///
/// The owner of a thread cache enters with plain stores: it says that it is active, and sees that nobody claimed
/// the thread cache. Who wants to empty the thread cache claims it, lets a fence pass over every thread
/// ([ProcessFence#everywhere]) and waits until the owner is not active; either the owner saw the claim, or it is
/// seen. An owner that finds its thread cache claimed does without it. Thread caches that threads share, and all
/// thread caches where there is no such fence, are entered with one compare-and-set. Nobody takes a lock or makes
/// a call of the driver inside.
abstract class ThreadCacheEntry {
    private static final boolean FENCED = ProcessFence.isSupported();

    private static final VarHandle ACTIVE = handle("active");
    private static final VarHandle CLAIMED = handle("claimed");

    /// The owner's thread id, which is never given to another thread; 0 for a thread cache that threads share.
    long ownerId;

    /// Whether only the owner enters, with plain stores.
    private final boolean fenced;
    private volatile @Nullable WeakReference<Thread> owner;

    @SuppressWarnings("unused") // through ACTIVE
    private int active;

    @SuppressWarnings("unused") // through CLAIMED
    private int claimed;

    /// @param owned whether one thread alone enters
    ThreadCacheEntry(boolean owned) {
        this.fenced = owned && FENCED;
    }

    /// Makes the calling thread the owner.
    final void own(Thread thread) {
        owner = new WeakReference<>(thread);
        ownerId = thread.threadId();
    }

    /// Whether the owner has ended. Seeing the end of a thread orders all that it wrote before what the
    /// observer does next.
    final boolean isOrphan() {
        WeakReference<Thread> reference = owner;
        if (reference == null) {
            return false;
        }
        Thread thread = reference.get();
        return thread == null || !thread.isAlive();
    }

    /// Enters, for a thread that shares the thread cache.
    ///
    /// @return false if somebody else is inside or wants to be
    final boolean enterShared() {
        return ACTIVE.compareAndSet(this, 0, 1);
    }

    /// Enters, for the owner.
    ///
    /// @return false if somebody else is inside or wants to be
    final boolean enter() {
        if (!FENCED) {
            return enterShared();
        }
        ACTIVE.setOpaque(this, 1);
        VarHandle.acquireFence();
        if ((int) CLAIMED.getAcquire(this) == 0) {
            return true;
        }
        ACTIVE.setRelease(this, 0);
        return false;
    }

    final void leave() {
        ACTIVE.setRelease(this, 0);
    }

    /// Keeps the owner from entering; a thread cache with plain entries needs [ProcessFence#everywhere] before
    /// [#awaitClaim]. One thread at a time.
    final void claim() {
        if (fenced) {
            CLAIMED.setVolatile(this, 1);
        }
    }

    /// Waits until the owner, who is inside for some instructions, has left.
    final void awaitClaim() {
        for (int spins = 0; !isClaimed(); spins++) {
            // The system may have taken the owner's processor away in the middle of them.
            if (spins < 1000) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(20_000);
            }
        }
    }

    private boolean isClaimed() {
        return fenced ? (int) ACTIVE.getAcquire(this) == 0 || isOwn() || isOrphan() : enterShared();
    }

    /// The owner is not inside when it waits itself.
    private boolean isOwn() {
        return ownerId == Thread.currentThread().threadId();
    }

    /// Lets the owner enter again.
    final void unclaim() {
        if (fenced) {
            CLAIMED.setRelease(this, 0);
        } else {
            leave();
        }
    }

    /// Ends a claim that was not waited for, or has ended.
    final void abandonClaim() {
        if (fenced) {
            CLAIMED.setRelease(this, 0);
        }
    }

    private static VarHandle handle(String field) {
        try {
            return MethodHandles.lookup().findVarHandle(ThreadCacheEntry.class, field, int.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }
}
