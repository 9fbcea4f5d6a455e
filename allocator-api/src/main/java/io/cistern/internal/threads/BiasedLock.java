package io.cistern.internal.threads;

import io.cistern.cuda.process.ProcessFence;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/// A lock that one thread, the owner, enters all the time, with plain stores, and others claim now and then.
///
/// **Steps.** The owner says that it is active and sees that nobody claimed the lock; else it does without what the
/// lock guards. A claimer claims, lets a fence pass over every thread ([ProcessFence#everywhere]), and waits until
/// the owner is not active. Either the owner saw the claim, or the claimer sees it active: the fence ensures that,
/// and the owner only keeps the compiler from exchanging its store and its load.
///
/// Locks that threads share, and all locks where there is no such fence, are entered with one compare-and-set.
///
/// **Threads.** One claimer at a time. Nobody takes a lock, or calls an allocator or the driver, inside.
public abstract class BiasedLock extends LinePadding {
    private static final boolean FENCED = ProcessFence.isSupported();

    private static final VarHandle ACTIVE = handle(MethodHandles.lookup(), "active", int.class);
    private static final VarHandle CLAIMED = handle(MethodHandles.lookup(), "claimed", int.class);

    /// Pauses before a wait sleeps: those inside leave after some instructions, unless the system took their
    /// processor away.
    private static final int SPINS = 1000;

    private final boolean fenced;

    /// Read and written through a handle, but for an owner that has no stack left for that.
    protected volatile int active;

    private int claimed;

    /// @param owned whether one thread alone enters
    protected BiasedLock(boolean owned) {
        this.fenced = owned && FENCED;
    }

    /// Enters, for the owner.
    ///
    /// @return false if somebody else is inside or claims the lock
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
    /// @return false if somebody else is inside
    public final boolean tryEnterShared() {
        return ACTIVE.compareAndSet(this, 0, 1);
    }

    /// Enters, for a thread that shares the lock, and waits for those inside.
    public final void enterShared() {
        while (!tryEnterShared()) {
            Thread.onSpinWait();
        }
    }

    public final void leave() {
        ACTIVE.setRelease(this, 0);
    }

    /// Keeps the owner from entering. A fence follows, and then [#awaitClaim].
    public final void claim() {
        CLAIMED.setVolatile(this, 1);
    }

    /// Whether the owner is kept from entering; for the claimer.
    protected final boolean isClaimed() {
        return claimed != 0;
    }

    /// Waits until nobody else is inside.
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
            if (spins < SPINS) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(20_000);
            }
        }
    }

    /// Whether the owner can't be inside, whatever it said.
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

    /// Lets the owner enter again, also where the claim was not waited for.
    protected final void endClaim() {
        CLAIMED.setRelease(this, 0);
    }

    /// Claims all, with one fence, and does something with each; a failure leaves none claimed.
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
            for (BiasedLock lock : locks) { // after a failure, those that it did not come to
                lock.endClaim();
            }
        }
    }
}
