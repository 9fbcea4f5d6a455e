package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.StackRoom;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.StampedLock;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The budgets that each block of a route is charged to, once each.
///
/// **Idea.** No budget is ever exceeded, since a thread takes the bytes from all budgets before it asks the
/// allocator. No request that fits is refused, since a thread decides a refusal alone: under the exclusive side
/// of one lock, after it has taken back the unspent leases of the full budget.
///
/// **Steps.** 1. A thread spends its leased bytes ([Lease]), without a lock or an atomic instruction. 2. If
/// they are not enough, it takes the missing bytes from each budget under the shared side of the lock, and more
/// in advance if there is plenty. If one budget has too few, the thread gives the bytes of the others back. 3.
/// Then, under the exclusive side, it recalls the leases of the full budget, and tries the request again or
/// refuses it. So no refusal counts bytes of an unfinished request that will be given back.
///
/// **Threads.** Any. Giving back needs no lock.
public final class Budgets {
    /// One for all budgets, since a block may be charged to budgets of several trees. A thread takes it once
    /// for some MiB.
    static final StampedLock ORDER = new StampedLock();

    /// A thread keeps at most this part of the smallest budget, so 16 threads keep at most a quarter.
    private static final int CREDIT_PART = 64;

    /// Threads lease in advance only while this part of each budget is free. Near the limit recalls would cost
    /// more than leases save.
    private static final int ROOM_PART = 8;

    private final Budget[] budgets;

    private Budgets(Set<Budget> budgets) {
        this.budgets = budgets.toArray(Budget[]::new);
    }

    /// Returns the most that a thread may keep.
    long maxCredit() {
        long smallest = Long.MAX_VALUE;
        for (Budget budget : budgets) {
            smallest = Math.min(smallest, budget.limitBytes());
        }
        return smallest / CREDIT_PART;
    }

    /// Combines budgets that apply already with one more budget and all above it.
    ///
    /// @return null if there is none
    public static @Nullable Budgets of(@Nullable Budgets outer, @Nullable Budget leaf) {
        Set<Budget> all = new LinkedHashSet<>();
        for (Budget budget = leaf; budget != null; budget = budget.parent()) {
            all.add(budget);
        }
        if (outer != null) {
            all.addAll(List.of(outer.budgets));
        }
        return all.isEmpty() ? null : new Budgets(all);
    }

    /// Takes bytes from each budget, for a block of another route.
    ///
    /// @param route the route that is charged here
    /// @throws DeviceOutOfMemoryException if the bytes don't fit; nothing is taken then
    public void take(Route route, long byteSize) {
        take(route, byteSize, 0, null);
    }

    /// Takes the bytes of a block from each budget.
    ///
    /// @param again how many of the bytes were already taken
    /// @param lease the calling thread's lease, which takes some bytes in advance if there is plenty; null if
    ///     it has none
    /// @throws DeviceOutOfMemoryException if the bytes don't fit; nothing is taken then
    void take(Route route, long byteSize, long again, @Nullable Lease lease) {
        StackRoom.require();
        long stamp = ORDER.readLock();
        boolean taken;
        try {
            taken = tryTake(byteSize - again);
            if (taken && lease != null && ProcessFence.isSupported() && isRoomy()) {
                lease.open(this);
            }
        } finally {
            ORDER.unlockRead(stamp);
        }
        if (!taken) {
            takeOrRefuse(route, byteSize, again);
        }
    }

    /// Recalls the leases of full budgets, and takes bytes from each budget.
    private void takeOrRefuse(Route route, long byteSize, long again) {
        String refusal;
        boolean above;
        long stamp = ORDER.writeLock();
        try {
            if (recallUntilFits(byteSize - again) && tryTake(byteSize - again)) {
                return;
            }
            refusal = refusal(byteSize, again);
            above = Stream.of(budgets).anyMatch(budget -> byteSize > budget.limitBytes());
        } finally {
            ORDER.unlockWrite(stamp);
        }
        throw DeviceOutOfMemoryException.ofLimit(byteSize, route.device, refusal, above);
    }

    private boolean recallUntilFits(long byteSize) {
        for (Budget budget : budgets) {
            while (byteSize > budget.room()) {
                if (!budget.recall()) {
                    return byteSize <= budget.room();
                }
            }
        }
        return true;
    }

    /// Takes bytes from each budget; under either side of the lock.
    ///
    /// @return false if the bytes don't fit; nothing is taken then
    boolean tryTake(long byteSize) {
        for (int i = 0; i < budgets.length; i++) {
            if (!budgets[i].tryTake(byteSize)) {
                while (--i >= 0) {
                    budgets[i].giveBack(byteSize);
                }
                return false;
            }
        }
        return true;
    }

    public void giveBack(long byteSize) {
        for (Budget budget : budgets) {
            budget.giveBack(byteSize);
        }
    }

    /// Returns whether there is plenty left in each budget.
    private boolean isRoomy() {
        for (Budget budget : budgets) {
            if (budget.room() < budget.limitBytes() / ROOM_PART) {
                return false;
            }
        }
        return true;
    }

    /// Lets blocks of a route be charged here.
    ///
    /// @param former the budgets that it is charged to already; after an error they stay as they are
    void attach(Route route, @Nullable Budgets former) {
        boolean attached = false;
        try {
            for (Budget budget : budgets) {
                budget.charge(route);
            }
            attached = true;
        } finally {
            if (!attached) {
                detach(route, former);
            }
        }
    }

    /// Stops charging blocks of a route here, after the leases of its threads were [recalled][#recall].
    ///
    /// @param next the budgets that it is charged to from now on
    void detach(Route route, @Nullable Budgets next) {
        for (Budget budget : budgets) {
            if (next == null || !next.contains(budget)) {
                budget.uncharge(route);
            }
        }
    }

    boolean contains(Budget budget) {
        for (Budget each : budgets) {
            if (each == budget) {
                return true;
            }
        }
        return false;
    }

    /// Takes back the leases for a route that has no live blocks and no allocation under way. So no owner of a
    /// lease is between its check and its write, and no fence is needed.
    static void recall(Route route) {
        long stamp = ORDER.writeLock();
        try {
            route.claimLeases();
            route.surrenderLeases();
        } finally {
            ORDER.unlockWrite(stamp);
        }
    }

    /// Returns the limits that lack room, and what to do about them; under the exclusive lock.
    private String refusal(long byteSize, long again) {
        List<String> full = new ArrayList<>();
        for (Budget budget : budgets) {
            if (byteSize - again > budget.limitBytes() - budget.usedBytes()) {
                boolean never = byteSize > budget.limitBytes();
                full.add(
                        budget + (never ? "; request less, or raise it" : "; free what is charged to it, or raise it"));
            }
        }
        return String.join("; ", full);
    }
}
