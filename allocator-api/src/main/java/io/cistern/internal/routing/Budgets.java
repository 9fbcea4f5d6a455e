package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.StackRoom;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.StampedLock;
import org.jspecify.annotations.Nullable;

/// The budgets that each block of a route is charged to, each of them once.
///
/// **Idea.** A budget is never exceeded, since bytes are taken from all of them before the allocator is asked.
/// Nothing that fits is refused, since a refusal is decided alone: under the exclusive side of one lock, after
/// all that threads leased of the full budget, and did not spend, was taken back.
///
/// **Steps.** 1. A thread spends what it leased ([Lease]); no lock, no atomic instruction. 2. When
/// that is not enough, it takes what it needs, and more to come if there is plenty, from each budget under the
/// shared side of the lock; if one has not enough, what was taken from the others goes back. 3. Then, under the
/// exclusive side, the leases of the full budget are recalled, and the request is tried again or refused. So
/// nobody sees the bytes of a request that is half done and will be taken back.
///
/// **Threads.** Any. Giving back needs no lock.
public final class Budgets {
    /// One for all budgets, since a block may be charged to budgets of several trees. It is taken once for some
    /// MiB.
    static final StampedLock ORDER = new StampedLock();

    /// A thread keeps at most this part of the smallest budget, so that 16 threads keep at
    /// most a quarter.
    private static final int CREDIT_PART = 64;

    /// Threads' counters lease only while this part of each budget is free: near the limit recalls would cost
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

    /// Combines budgets that apply already with one more and all above it.
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

    /// Takes bytes from each budget.
    ///
    /// @param lease that of the calling thread, which takes some for later too if there is plenty; null without one
    /// @throws DeviceOutOfMemoryException if they don't fit; nothing is taken then
    void take(Route route, long byteSize, @Nullable Lease lease) {
        StackRoom.require();
        long stamp = ORDER.readLock();
        boolean taken;
        try {
            taken = tryTake(byteSize);
            if (taken && lease != null && ProcessFence.isSupported() && isRoomy()) {
                lease.open(this);
            }
        } finally {
            ORDER.unlockRead(stamp);
        }
        if (!taken) {
            takeOrRefuse(route, byteSize);
        }
    }

    /// Takes bytes from each budget after the leases of those that are full were recalled.
    private void takeOrRefuse(Route route, long byteSize) {
        String refusal;
        long stamp = ORDER.writeLock();
        try {
            if (recallUntilFits(byteSize) && tryTake(byteSize)) {
                return;
            }
            refusal = describe();
        } finally {
            ORDER.unlockWrite(stamp);
        }
        throw DeviceOutOfMemoryException.ofLimit(byteSize, route.device, refusal);
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
    /// @return false if they don't fit; nothing is taken then
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

    void giveBack(long byteSize) {
        for (Budget budget : budgets) {
            budget.giveBack(byteSize);
        }
    }

    /// Whether there is plenty left in each budget.
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
    /// @param former where it is charged already, which stays as it is after an error
    void attach(Route route, @Nullable Budgets former) {
        boolean attached = false;
        try {
            for (Budget budget : budgets) {
                budget.charge(route);
            }
            attached = true;
        } finally {
            if (!attached) {
                unchargeUnlessIn(former, route);
            }
        }
    }

    /// Stops charging blocks of a route here, after what threads leased was [recalled][#recall].
    ///
    /// @param next where it is charged from now on
    void detach(Route route, @Nullable Budgets next) {
        unchargeUnlessIn(next, route);
    }

    private void unchargeUnlessIn(@Nullable Budgets others, Route route) {
        for (Budget budget : budgets) {
            if (others == null || !others.contains(budget)) {
                budget.uncharge(route);
            }
        }
    }

    private boolean contains(Budget budget) {
        for (Budget each : budgets) {
            if (each == budget) {
                return true;
            }
        }
        return false;
    }

    /// Takes back what threads leased for a route that has no live blocks and no allocation under way.
    /// So no owner of a lease is between its check and its write, and no fence is needed.
    static void recall(Route route) {
        long stamp = ORDER.writeLock();
        try {
            route.claimLeases();
            route.surrenderLeases();
        } finally {
            ORDER.unlockWrite(stamp);
        }
    }

    private String describe() {
        List<String> levels = new ArrayList<>();
        for (Budget budget : budgets) {
            levels.add(budget.toString());
        }
        return String.join("; ", levels);
    }
}
