package io.cistern.internal.threads;

import io.cistern.cuda.process.ProcessFence;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/// A lock that one thread, the owner, enters often, with plain stores, and that other threads claim rarely.
///
/// **Steps.** The owner sets `active`, and enters if nobody has claimed the lock; otherwise it leaves the
/// guarded state alone. A claimer sets `claimed`, lets a fence pass over every thread
/// ([ProcessFence#everywhere]), and waits until the owner is not active. The fence ensures that either the
/// owner sees the claim, or the claimer sees the owner active. The owner only has to keep the compiler from
/// reordering its store and its load.
///
/// Threads enter shared locks with one compare-and-set, and so all locks if the system has no such fence.
///
/// **Threads.** One claimer at a time. A thread inside takes no lock, and calls neither an allocator nor the
/// driver.
public abstract class BiasedLock extends LinePadding {
    private static final boolean FENCED = ProcessFence.isSupported();

    private static final VarHandle ACTIVE = handle(MethodHandles.lookup(), "active", int.class);
    private static final VarHandle CLAIMED = handle(MethodHandles.lookup(), "claimed", int.class);

    /// Pauses before a wait sleeps: a thread inside leaves after some instructions, unless the system has taken
    /// its processor away.
    private static final int SPINS = 1000;
    private static final long NAP_NANOS = 20_000;

    private final boolean fenced;

    /// Read and written through a handle, except by an owner that has no stack left for that.
    protected volatile int active;

    private int claimed;

    /// @param owned whether one thread alone owns it
    protected BiasedLock(boolean owned) {
        this.fenced = owned && FENCED;
    }

    /// Enters, for the owner.
    ///
    /// @return false if another thread is inside or claims the lock
    public final boolean tryEnter() {
        if (!FENCED) {
            return tryEnterShared();
        }
        ACTIVE.setOpaque(this, 1);
        VarHandle.acquireFence();
        if ((int) CLAIMED.getAcquire(this) == 0) {
            return true;
        }
        ACTIVE.setRelease(this, 0);
        return false;
    }

    /// Enters, for a thread that shares the lock.
    ///
    /// @return false if another thread is inside
    public final boolean tryEnterShared() {
        return ACTIVE.compareAndSet(this, 0, 1);
    }

    /// Enters, for a thread that shares the lock, and waits while another thread is inside.
    public final void enterShared() {
        for (int spins = 0; !tryEnterShared(); spins++) {
            pause(spins);
        }
    }

    /// Spins, or sleeps after many spins: a virtual thread inside may have been unmounted and need a
    /// carrier, and threads that only yield would run first.
    static void pause(int spins) {
        if (spins < SPINS) {
            Thread.onSpinWait();
        } else {
            LockSupport.parkNanos(NAP_NANOS);
        }
    }

    public final void leave() {
        ACTIVE.setRelease(this, 0);
    }

    /// Keeps the owner from entering. A fence follows, and then [#awaitClaim].
    public final void claim() {
        CLAIMED.setVolatile(this, 1);
    }

    /// Returns whether the owner is kept from entering; for the claimer.
    protected final boolean isClaimed() {
        return claimed != 0;
    }

    /// Waits until no other thread is inside.
    public final void awaitClaim() {
        if (fenced) {
            awaitOwner();
        } else {
            enterShared();
        }
    }

    /// Waits until the owner is not inside.
    protected final void awaitOwner() {
        for (int spins = 0; (int) ACTIVE.getAcquire(this) != 0 && !isOwnerElsewhere(); spins++) {
            pause(spins);
        }
    }

    /// Returns whether the owner can't be inside, even if it is marked active.
    protected boolean isOwnerElsewhere() {
        return false;
    }

    /// Lets others enter again, after [#awaitClaim].
    public final void unclaim() {
        endClaim();
        if (!fenced) {
            leave();
        }
    }

    /// Lets the owner enter again, even if no thread waited for the claim.
    protected final void endClaim() {
        CLAIMED.setRelease(this, 0);
    }

    /// Claims all locks, with one fence, and runs an action with each. A failure leaves none claimed.
    public static <L extends BiasedLock> void claimEach(L[] locks, Consumer<? super L> action) {
        try {
            for (L lock : locks) {
                lock.claim();
            }
            if (FENCED && locks.length > 0) {
                ProcessFence.everywhere();
            }
            for (L lock : locks) {
                lock.awaitClaim();
                try {
                    action.accept(lock);
                } finally {
                    lock.unclaim();
                }
            }
        } finally {
            for (BiasedLock lock : locks) { // after a failure, for locks that the loop did not reach
                lock.endClaim();
            }
        }
    }
}
