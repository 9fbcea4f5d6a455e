package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import io.cistern.internal.names.StackRoom;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/// Bytes that one thread's counters took from the budgets of one route in advance, and spends without atomic
/// instructions.
///
/// **Steps.** The owner says that it is active, sees that nobody claimed the lease, changes the credit, and says
/// that it is done: four plain memory accesses. Who recalls claims the lease, lets the fence pass over every
/// thread ([ProcessFence#everywhere]), waits until the owner is not active, and takes the credit. Either the
/// owner saw the claim, or who recalls sees it active: that is what the fence is for, and the owner only keeps
/// the compiler from exchanging its store and its load. The owner is never active across a call.
///
/// A claimed lease stays claimed, and its owner goes to the budgets for every block, until there is plenty
/// again. Where there is no such fence, leases stay claimed for ever.
///
/// **Errors.** A StackOverflowError may come at any call. What an error undoes is therefore done without one, by
/// writes to fields; bytes that should have gone back to the budgets are owed to them, until somebody recalls the
/// lease.
///
/// **Invariants**: 0 ≤ credit ≤ maxCredit; claimed and nobody active → credit = 0, unless a recall failed.
///
/// **Threads.** The thread's counters's owner, or who holds the exclusive lock of [Budgets]. The owner opens the
/// lease and takes for it under the shared lock, so that it never does while leases are being recalled.
final class Lease extends LinePadding {
    private static final VarHandle ACTIVE = handle("active", int.class);
    private static final VarHandle CLAIMED = handle("claimed", int.class);
    private static final VarHandle CREDIT = handle("credit", long.class);

    private final Route route;

    @SuppressWarnings("unused") // read through ACTIVE
    private volatile int active;

    private int claimed = 1;
    private long credit;
    private long maxCredit;

    /// Bytes that an error kept from being given back: all that there ever were. Written by the owner.
    long owed;

    // Keeps what comes behind on the heap, and the field above that is only read, out of these cache lines.
    @SuppressWarnings("unused")
    private long p1, p2, p3, p4, p5, p6, p7, p8;

    /// Those of the bytes owed that were given back since; under the exclusive lock of [Budgets].
    private volatile long repaid;

    Lease(Route route) {
        this.route = route;
    }

    /// Takes the bytes of a block before it is allocated.
    ///
    /// @throws io.cistern.DeviceOutOfMemoryException if they don't fit; nothing is taken then
    void take(long byteSize) {
        if (!spend(byteSize)) {
            lease(byteSize);
        }
    }

    /// Gives the bytes of a block back after it was freed, or could not be allocated.
    ///
    /// @throws StackOverflowError before anything was given back: the caller then owes the bytes
    void giveBack(long byteSize) {
        long beyond = keep(byteSize);
        if (beyond != 0) {
            try {
                StackRoom.require();
                budgets().giveBack(beyond);
            } catch (StackOverflowError _) {
                owed += beyond;
            }
        }
    }

    private boolean spend(long byteSize) {
        boolean spent = false;
        try {
            ACTIVE.setOpaque(this, 1);
            VarHandle.acquireFence();
            if ((int) CLAIMED.getOpaque(this) == 0 && credit >= byteSize) {
                CREDIT.setOpaque(this, credit - byteSize);
                spent = true;
            }
            ACTIVE.setRelease(this, 0);
        } catch (Throwable full) {
            active = 0;
            owed += spent ? byteSize : 0;
            throw full;
        }
        return spent;
    }

    /// @return the bytes that could not be kept
    private long keep(long byteSize) {
        long beyond = byteSize;
        try {
            ACTIVE.setOpaque(this, 1);
            VarHandle.acquireFence();
            if ((int) CLAIMED.getOpaque(this) == 0) {
                long more = credit + byteSize;
                // Half remains, so that a thread that only frees does not come here each time.
                long kept = more <= maxCredit ? more : maxCredit / 2;
                CREDIT.setOpaque(this, kept);
                beyond = more - kept;
            }
            ACTIVE.setRelease(this, 0);
        } catch (Throwable full) {
            active = 0;
            owed += beyond;
            beyond = 0;
        }
        return beyond;
    }

    private void lease(long byteSize) {
        StackRoom.require();
        Budgets budgets = budgets();
        long stamp = Budgets.ORDER.readLock();
        boolean taken;
        try {
            taken = budgets.tryTake(byteSize);
            if (taken && ProcessFence.isSupported() && budgets.isRoomy()) {
                open(budgets);
            }
        } finally {
            Budgets.ORDER.unlockRead(stamp);
        }
        if (!taken) {
            budgets.takeOrRefuse(route, byteSize);
        }
    }

    /// Takes some bytes for blocks to come.
    private void open(Budgets budgets) {
        maxCredit = budgets.maxCredit();
        long more = Math.min(Meter.CHUNK, maxCredit / 2) - credit;
        if (more > 0 && budgets.tryTake(more)) {
            CREDIT.setOpaque(this, credit + more);
        }
        CLAIMED.setOpaque(this, 0);
    }

    /// Claims the lease.
    ///
    /// @return whether it may have bytes for [#surrender]
    boolean claim() {
        if (claimed != 0) {
            return credit() != 0;
        }
        CLAIMED.setVolatile(this, 1);
        return true;
    }

    /// Takes the credit of a lease that was claimed before the last fence, and what is owed.
    ///
    /// @return bytes given back to the budgets
    long surrender() {
        for (int spins = 0; (int) ACTIVE.getAcquire(this) != 0; spins++) {
            // A few instructions, unless the system took the owner's processor away in the middle of
            // them.
            if (spins < 1000) {
                Thread.onSpinWait();
            } else {
                ThreadTable.pause();
            }
        }
        long everOwed = owed;
        long surrendered = credit + everOwed - repaid;
        CREDIT.setOpaque(this, 0L);
        repaid = everOwed;
        budgets().giveBack(surrendered);
        return surrendered;
    }

    /// What is not spent; for any thread.
    long credit() {
        return (long) CREDIT.getOpaque(this) + owed - repaid;
    }

    private Budgets budgets() {
        Budgets budgets = route.budgets;
        if (budgets == null) {
            throw new IllegalStateException("a lease without a budget on " + route);
        }
        return budgets;
    }

    private static VarHandle handle(String field, Class<?> type) {
        try {
            return MethodHandles.lookup().findVarHandle(Lease.class, field, type);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }
}
