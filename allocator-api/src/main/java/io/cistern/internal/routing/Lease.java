package io.cistern.internal.routing;

import io.cistern.internal.names.StackRoom;
import io.cistern.internal.threads.BiasedLock;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/// Bytes that one thread took from the budgets of one route in advance, and spends without atomic
/// instructions.
///
/// A recall claims leases, as [BiasedLock] describes. A lease stays claimed until there is plenty again;
/// until then, its owner uses the budgets for every block. If the system has no process-wide fence, leases
/// stay claimed for ever.
///
/// **Errors.** Any call may throw a StackOverflowError. So the code that undoes a step after an error makes
/// no calls and only writes fields. Bytes that should have gone back to the budgets are owed to them, until
/// the lease is recalled.
///
/// **Invariants**: 0 ≤ credit ≤ maxCredit; claimed and not active → credit = 0, unless a recall failed.
///
/// **Threads.** The thread, or the holder of the exclusive lock of [Budgets]. The owner opens the lease and
/// takes bytes for it under the shared lock, so never while leases are being recalled.
final class Lease extends BiasedLock {
    private static final VarHandle CREDIT = handle(MethodHandles.lookup(), "credit", long.class);

    private final Route route;

    private long credit;
    private long maxCredit;

    /// All bytes that errors ever kept from being given back. Written by the owner.
    long owed;

    // Keeps later objects on the heap, and the field above that is only read, out of these cache lines.
    @SuppressWarnings("unused")
    private long p1, p2, p3, p4, p5, p6, p7, p8;

    /// The owed bytes that were given back since. Written under the exclusive lock of [Budgets].
    private volatile long repaid;

    Lease(Route route) {
        super(true);
        this.route = route;
        claim();
    }

    /// Takes the bytes of a block before it is allocated.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if the bytes don't fit; nothing is taken then
    void take(long byteSize) {
        if (!spend(byteSize)) {
            budgets().take(route, byteSize, 0, this);
        }
    }

    /// Gives the bytes of a block back after it was freed, or could not be allocated.
    ///
    /// @throws StackOverflowError before anything was given back; the caller then owes the bytes
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
            if (tryEnter()) {
                if (credit >= byteSize) {
                    CREDIT.setOpaque(this, credit - byteSize);
                    spent = true;
                }
                leave();
            }
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
            if (tryEnter()) {
                long more = credit + byteSize;
                // Half remains, so that a thread that only frees does not come here at each free.
                long kept = more <= maxCredit ? more : maxCredit / 2;
                CREDIT.setOpaque(this, kept);
                beyond = more - kept;
                leave();
            }
        } catch (Throwable full) {
            active = 0;
            owed += beyond;
            beyond = 0;
        }
        return beyond;
    }

    /// Takes some bytes in advance for later blocks; under the shared lock of [Budgets].
    void open(Budgets budgets) {
        maxCredit = budgets.maxCredit();
        long more = Math.min(Meter.CHUNK, maxCredit / 2) - credit;
        if (more > 0 && budgets.tryTake(more)) {
            CREDIT.setOpaque(this, credit + more);
        }
        endClaim();
    }

    /// Claims the lease.
    ///
    /// @return whether it may have bytes for [#surrender]
    boolean claimCredit() {
        if (isClaimed()) {
            return credit() != 0;
        }
        claim();
        return true;
    }

    /// Takes the credit of a lease that was claimed before the last fence, and the owed bytes.
    ///
    /// @return bytes given back to the budgets
    long surrender() {
        awaitOwner();
        long everOwed = owed;
        long surrendered = credit + everOwed - repaid;
        CREDIT.setOpaque(this, 0L);
        repaid = everOwed;
        budgets().giveBack(surrendered);
        return surrendered;
    }

    /// Returns the bytes that are not spent, owed ones included; for any thread.
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
}
