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
/// **Threads.** The owner writes without atomic instructions and enters nothing. Virtual threads share some, each
/// [entered][#enterShared] for a few instructions and never across a call into an allocator or the driver.
public final class ThreadCounters extends ThreadState {
    private static final VarHandle TALLIES = handle(MethodHandles.lookup(), "tallies", Tally[].class);
    private static final VarHandle TALLY = MethodHandles.arrayElementVarHandle(Tally[].class);

    private static final int LOOKUPS_A_CHANGE = 16;

    /// The region that the owner is in; written and read by the owner alone.
    @Nullable
    ScopeStack scopes;

    /// By the route's index; where the tally there is another route's, that one has drained.
    private @Nullable Tally[] tallies = {};

    /// The tally that was in use last, or lately: see [#of].
    private @Nullable Tally atHand;

    /// How often another one was looked for.
    private int lookups;

    /// The region that the calling thread, which owns these, is in; null outside all.
    public @Nullable ScopeStack scopes() {
        return scopes;
    }

    /// @param owned whether one thread has them to itself
    ThreadCounters(boolean owned) {
        super(owned);
    }

    /// The counters of all threads. The shared ones are there at once: a free that counts must not need memory.
    static ThreadTable<ThreadCounters> table(Consumer<ThreadCounters> whenOwned) {
        var threads = new ThreadTable<>(new ThreadCounters[ThreadTable.ENTRIES], 0, ThreadCounters::new, whenOwned);
        threads.makeShared();
        return threads;
    }

    /// The tally of a route, for a thread that has entered: it leaves.
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
    /// @param gaveBlock false if the attempt gave nothing
    /// @return as [Tally#allocated]
    boolean countAllocation(Tally tally, long byteSize, boolean gaveBlock) {
        enterShared();
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

    /// The tally of a route.
    ///
    /// Most calls are for the same route as the call before, so that tally is at hand: the way through the index
    /// is three dependent reads more, and a pair takes as long as its longest chain of them.
    Tally of(Route route) {
        Tally tally = atHand;
        return tally != null && tally.route == route ? tally : look(route);
    }

    /// Changes what is at hand now and then alone: a thread that goes from route to route with each call would
    /// otherwise pay a store of a reference, which costs a fence in G1.
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

    /// Makes the tally of a route. That of a drained route is not kept: its place may be another route's, and the
    /// call that wants it is refused.
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

    /// The tally of a route, or null; for any thread.
    @Nullable
    Tally find(Route route) {
        @Nullable Tally[] present = (@Nullable Tally[]) TALLIES.getAcquire(this);
        Tally tally = route.index < present.length ? (Tally) TALLY.getAcquire(present, route.index) : null;
        return tally != null && tally.route == route ? tally : null;
    }
}
