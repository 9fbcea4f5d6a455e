package io.cistern.internal.routing;

import io.cistern.internal.threads.ThreadState;
import io.cistern.internal.threads.ThreadTable;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// One thread's tallies, one for each route, so that counting shares nothing between threads.
///
/// **Threads.** The owner writes without atomic instructions and without entering. Virtual threads share a
/// few. They [enter][#enterShared] one for some instructions, and never across a call into an allocator or
/// the driver.
public final class ThreadCounters extends ThreadState {
    private static final VarHandle TALLIES = handle(MethodHandles.lookup(), "tallies", Tally[].class);
    private static final VarHandle TALLY = MethodHandles.arrayElementVarHandle(Tally[].class);

    private static final int LOOKUPS_A_CHANGE = 16;

    /// The region that the owner is in; written and read only by the owner.
    @Nullable
    ScopeStack scopes;

    /// By the route's index. If the tally at an index belongs to another route, that one has drained.
    private @Nullable Tally[] tallies = {};

    /// A tally that was in use lately: see [#of].
    private @Nullable Tally atHand;

    /// How often [#look] was called.
    private int lookups;

    /// Returns the region of the calling thread, which owns these counters; null outside all.
    public @Nullable ScopeStack scopes() {
        return scopes;
    }

    /// @param owned whether one thread owns them
    ThreadCounters(boolean owned) {
        super(owned);
    }

    /// Returns a table for the counters of all threads. The shared ones are made at once, since a free that
    /// counts must not need memory.
    static ThreadTable<ThreadCounters> table(Consumer<ThreadCounters> whenOwned) {
        var threads = new ThreadTable<>(new ThreadCounters[ThreadTable.ENTRIES], 0, ThreadCounters::new, whenOwned);
        threads.makeShared();
        return threads;
    }

    /// Returns the tally of a route, and leaves the counters, which the thread has entered.
    Tally leaveWith(Route route) {
        try {
            Tally tally = of(route);
            leave();
            return tally;
        } catch (Throwable full) {
            active = 0; // no call
            throw full;
        }
    }

    /// Returns the tally of a route, counts that an allocation begins, and leaves.
    Tally leaveBeginning(Route route) {
        Tally tally = null;
        long attempts = 0;
        try {
            tally = of(route);
            attempts = tally.attempts;
            tally.begins();
            leave();
            return tally;
        } catch (Throwable full) {
            if (tally != null && tally.attempts != attempts) {
                tally.failures++;
            }
            active = 0;
            throw full;
        }
    }

    /// Enters, counts the end of an allocation in a tally of these counters, and leaves.
    ///
    /// @param again how many of the bytes are counted already; below 0 to count bytes that no block has
    /// @param gaveBlock false if the attempt gave no block
    /// @return as for [Tally#allocated]
    boolean countAllocation(Tally tally, long byteSize, long again, boolean gaveBlock) {
        enterShared();
        tally.requested -= again;
        long requested = tally.requested;
        long ended = tally.allocations + tally.failures;
        try {
            boolean beyond = gaveBlock && tally.allocated(byteSize);
            if (!gaveBlock) {
                tally.failed();
            }
            leave();
            return beyond;
        } catch (Throwable full) {
            if (tally.allocations + tally.failures == ended) {
                tally.requested = requested + (gaveBlock ? byteSize : 0);
                tally.allocations += gaveBlock ? 1 : 0;
                tally.failures += gaveBlock ? 0 : 1;
            }
            active = 0;
            throw full;
        }
    }

    /// Enters, counts bytes that no block had as no longer requested, and leaves.
    void countReleased(Tally tally, long byteSize) {
        enterShared();
        tally.released(byteSize);
        leave();
    }

    /// Enters, counts a free in a tally of these counters, and leaves.
    void countFree(Tally tally, long byteSize) {
        enterShared();
        long requested = tally.requested;
        long frees = tally.frees;
        try {
            tally.freed(byteSize);
            leave();
        } catch (Throwable full) {
            if (tally.frees == frees) {
                tally.requested = requested - byteSize;
                tally.frees++;
            }
            active = 0;
            throw full;
        }
    }

    /// Returns the tally of a route.
    ///
    /// Most calls are for the same route as the call before, so that tally is kept at hand. The look-up by
    /// index takes three more dependent reads, and the longest chain of them decides how long an allocation
    /// and its free take.
    Tally of(Route route) {
        Tally tally = atHand;
        return tally != null && tally.route == route ? tally : look(route);
    }

    /// Looks the tally up by index. It replaces the tally at hand only occasionally: otherwise a thread
    /// that changes its route with each call would pay for a store of a reference, which costs a fence in
    /// G1.
    private Tally look(Route route) {
        @Nullable Tally[] present = tallies;
        int index = route.index;
        Tally tally = index < present.length ? present[index] : null;
        if (tally == null || tally.route != route) {
            tally = make(route);
        }
        if ((++lookups & (LOOKUPS_A_CHANGE - 1)) == 0) {
            atHand = tally;
        }
        return tally;
    }

    /// Makes the tally of a route. The tally of a drained route is not kept, since its place may belong to
    /// another route; the call that wants it is refused.
    private Tally make(Route route) {
        Tally tally = new Tally(route);
        if (route.retired) {
            return tally;
        }
        if (route.index >= tallies.length) {
            TALLIES.setRelease(this, Arrays.copyOf(tallies, Math.max(2 * tallies.length, route.index + 1)));
        }
        TALLY.setRelease(tallies, route.index, tally);
        return tally;
    }

    /// Drops the tally of a drained route, so that threads do not keep the routes of closed pools; for any
    /// thread. The owner may keep it as `atHand` until its next route.
    void forget(Route route) {
        Tally tally = find(route);
        if (tally != null) {
            TALLY.compareAndSet((@Nullable Tally[]) TALLIES.getAcquire(this), route.index, tally, null);
        }
    }

    /// Returns the tally of a route, or null; for any thread.
    @Nullable
    Tally find(Route route) {
        @Nullable Tally[] present = (@Nullable Tally[]) TALLIES.getAcquire(this);
        Tally tally = route.index < present.length ? (Tally) TALLY.getAcquire(present, route.index) : null;
        return tally != null && tally.route == route ? tally : null;
    }
}
