package io.cistern.internal.routing;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// One thread's tallies, one for each route, so that counting shares nothing between threads.
///
/// **Threads.** An *owned* thread's counters is written by its thread alone, without atomic instructions. A
/// *shared* thread's counters serves virtual threads: whoever holds its word writes. The word is held for a few
/// instructions and never across a call into an allocator or the driver.
public final class ThreadCounters extends LinePadding {
    private static final VarHandle WORD = handle("word", int.class);
    private static final VarHandle TALLIES = handle("tallies", Tally[].class);
    private static final VarHandle TALLY = MethodHandles.arrayElementVarHandle(Tally[].class);

    private static final int LOOKUPS_A_CHANGE = 16;

    /// The owner's thread id, which is never given to another thread; 0 for a shared thread's counters.
    long ownerId;

    /// Tells when the owner has ended, without keeping it.
    private @Nullable WeakReference<Thread> owner;

    /// The region that the owner is in; written and read by the owner alone.
    @Nullable
    ScopeStack scopes;

    /// By the route's index; where the tally there is another route's, that one has drained.
    private @Nullable Tally[] tallies = {};

    /// The tally that was in use last, or lately: see [#of].
    private @Nullable Tally atHand;

    /// How often another one was looked for.
    private int lookups;

    @SuppressWarnings("unused") // 0 free, 1 held; through WORD
    private volatile int word;

    /// Makes a thread the owner; called by that thread.
    void own(Thread thread) {
        scopes = null;
        owner = new WeakReference<>(thread);
        ownerId = thread.threadId();
    }

    /// Whether the owner has ended, so that another thread may take the thread's counters with all its counters.
    /// Seeing the end of a thread orders all that it wrote before what the observer does next.
    boolean isOrphan() {
        WeakReference<Thread> reference = owner;
        if (reference == null) {
            return false;
        }
        Thread thread = reference.get();
        return thread == null || !thread.isAlive();
    }

    boolean tryEnter() {
        return WORD.compareAndSet(this, 0, 1);
    }

    void enter() {
        while (!tryEnter()) {
            Thread.onSpinWait();
        }
    }

    void leave() {
        WORD.setRelease(this, 0);
    }

    /// The tally of a route, for a thread that has entered: it leaves.
    Tally leaveWith(Route route) {
        try {
            Tally tally = of(route);
            leave();
            return tally;
        } catch (Throwable full) {
            word = 0; // no call
            throw full;
        }
    }

    /// As the other, for an allocation that begins.
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
            word = 0;
            throw full;
        }
    }

    /// Enters, counts the end of an allocation in a tally of these counters, and leaves.
    ///
    /// @param gaveBlock false if the attempt gave nothing
    /// @return as [Tally#allocated]
    boolean countAllocation(Tally tally, long byteSize, boolean gaveBlock) {
        enter();
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
            word = 0;
            throw full;
        }
    }

    /// Enters, counts a free in a tally of these counters, and leaves.
    void countFree(Tally tally, long byteSize) {
        enter();
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
            word = 0;
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

    /// Makes the tally of a route. For one that has drained it is forgotten at once: whoever still has it in hand
    /// is refused, and its place may be another route's.
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

    /// Adds the counters of a route to a sum; for any thread.
    void addTo(TallySum sum, Route route) {
        Tally tally = find(route);
        if (tally != null) {
            tally.addTo(sum);
        }
    }

    /// Blocks of a route that are counted alive here; for any thread.
    long live(Route route) {
        Tally tally = find(route);
        return tally != null ? tally.live() : 0;
    }

    /// What is leased of a route's budgets; for any thread.
    @Nullable
    Lease lease(Route route) {
        Tally tally = find(route);
        return tally != null ? tally.lease : null;
    }

    /// Whether an allocation through a route is under way here; for any thread.
    boolean isAllocating(Route route) {
        Tally tally = find(route);
        return tally != null && tally.isAllocating();
    }

    /// The tally of a route, or null; for any thread.
    @Nullable
    Tally find(Route route) {
        @Nullable Tally[] present = (@Nullable Tally[]) TALLIES.getAcquire(this);
        Tally tally = route.index < present.length ? (Tally) TALLY.getAcquire(present, route.index) : null;
        return tally != null && tally.route == route ? tally : null;
    }

    private static VarHandle handle(String field, Class<?> type) {
        try {
            return MethodHandles.lookup().findVarHandle(ThreadCounters.class, field, type);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }
}
