package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Finds the calling thread's thread's counters.
///
/// A platform thread owns a thread's counters. It is found in a table by the low bits of the thread's id, which
/// costs one read and one comparison. Each thread's counters has two entries where it may stand, so that threads
/// whose ids agree mostly find theirs there; who finds both taken goes through a thread-local. When a thread
/// ends, its thread's counters waits with its counters for the next new thread, so there are never more threads'
/// counters than threads were alive at once. Virtual threads share a fixed number of threads' counters: each
/// tries the one its id points to and moves on when it is held.
final class ThreadTable {
    /// Large enough that busy threads rarely meet, small enough to stay in the cache.
    private static final int TABLE_SIZE = 1024;

    /// From one of a thread's counters's entries to the other.
    private static final int SECOND = TABLE_SIZE / 2;

    private static final int SHARED_COUNTERS =
            Integer.highestOneBit(4 * Runtime.getRuntime().availableProcessors());

    /// Read and written without order: a thread takes only a thread's counters that bears its own id, which it
    /// wrote itself.
    final @Nullable ThreadCounters[] table = new ThreadCounters[TABLE_SIZE];

    /// Weak, since a thread's counters leads to its device memory and so to this key: else what is closed would
    /// stay for as long as the threads that used it. [#owned] holds the threads' counters meanwhile.
    private final ThreadLocal<WeakReference<ThreadCounters>> mine =
            ThreadLocal.withInitial(() -> new WeakReference<>(adoptOrMake()));
    private final ThreadCounters[] shared = new ThreadCounters[SHARED_COUNTERS];
    private volatile ThreadCounters[] owned = {};

    final ScopeStacks scopeStacks = new ScopeStacks(this);

    ThreadTable() {
        for (int i = 0; i < shared.length; i++) {
            shared[i] = new ThreadCounters();
        }
    }

    /// The calling thread's own thread's counters, or null for a virtual thread.
    @Nullable
    ThreadCounters own() {
        return own(table);
    }

    /// As the other, for a caller that has the table already.
    @Nullable
    ThreadCounters own(@Nullable ThreadCounters[] table) {
        Thread thread = Thread.currentThread();
        long id = thread.threadId();
        ThreadCounters counters = table[entry(id)];
        return counters != null && counters.ownerId == id ? counters : find(thread);
    }

    private @Nullable ThreadCounters find(Thread thread) {
        int first = entry(thread.threadId());
        int second = first ^ SECOND;
        ThreadCounters there = table[second];
        if (there != null && there.ownerId == thread.threadId()) {
            return there;
        }
        if (thread.isVirtual()) {
            return null;
        }
        ThreadCounters counters = Objects.requireNonNull(mine.get().get());
        if (isFree(first)) {
            table[first] = counters;
        } else if (isFree(second)) {
            table[second] = counters;
        }
        return counters;
    }

    /// Whether no thread that runs finds its thread's counters there: one that has a thread's counters of an
    /// ended thread now finds it elsewhere.
    private boolean isFree(int at) {
        ThreadCounters there = table[at];
        return there == null || there.isOrphan() || (entry(there.ownerId) | SECOND) != (at | SECOND);
    }

    private static int entry(long threadId) {
        return (int) threadId & (TABLE_SIZE - 1);
    }

    /// The calling thread's own counters, or shared ones; entered either way.
    ThreadCounters enter() {
        ThreadCounters own = own();
        if (own == null) {
            return enterShared();
        }
        own.enter();
        return own;
    }

    /// Shared counters, entered; the caller leaves them. Ends, since each thread that has entered some leaves them after
    /// a few instructions, also with an error.
    ThreadCounters enterShared() {
        int at = (int) Thread.currentThread().threadId();
        while (true) {
            ThreadCounters counters = shared[at++ & (SHARED_COUNTERS - 1)];
            if (counters.tryEnter()) {
                return counters;
            }
            Thread.onSpinWait();
        }
    }

    private synchronized ThreadCounters adoptOrMake() {
        for (ThreadCounters counters : owned) {
            if (counters.isOrphan()) {
                counters.own(Thread.currentThread());
                counters.scopes = scopeStacks.inherited();
                return counters;
            }
        }
        ThreadCounters counters = new ThreadCounters();
        counters.own(Thread.currentThread());
        counters.scopes = scopeStacks.inherited();
        ThreadCounters[] more = Arrays.copyOf(owned, owned.length + 1);
        more[owned.length] = counters;
        owned = more;
        return counters;
    }

    /// Waits until the allocations through a route that began before it refused have ended. One under way may be
    /// waiting for the driver, so this sleeps rather than spins.
    void awaitAllocations(Route route) {
        if (ProcessFence.isSupported()) {
            ProcessFence.everywhere();
        }
        ThreadCounters mine = own();
        for (ThreadCounters counters : owned) {
            while (counters != mine && counters.isAllocating(route)) {
                pause();
            }
        }
        for (ThreadCounters counters : shared) {
            while (counters.isAllocating(route)) {
                pause();
            }
        }
    }

    /// Whether a virtual thread allocates through a route.
    boolean isAllocatingShared(Route route) {
        for (ThreadCounters counters : shared) {
            if (counters.isAllocating(route)) {
                return true;
            }
        }
        return false;
    }

    static void pause() {
        LockSupport.parkNanos(20_000);
    }

    /// The credit of all leases of a route; for any thread.
    long creditFrom(Route route) {
        long credit = 0;
        for (ThreadCounters counters : owned) {
            Lease lease = counters.lease(route);
            credit += lease != null ? lease.credit() : 0;
        }
        return credit;
    }

    /// Claims the leases of a route; under the exclusive lock of [Budgets].
    ///
    /// @return whether they may have bytes to surrender
    boolean claimLeases(Route route) {
        boolean any = false;
        for (ThreadCounters counters : owned) {
            Lease lease = counters.lease(route);
            any |= lease != null && lease.claim();
        }
        return any;
    }

    /// Takes the credit of leases that were all claimed, when no owner is between its check and its write any
    /// more.
    ///
    /// @return bytes given back to the budgets
    long surrenderLeases(Route route) {
        long surrendered = 0;
        for (ThreadCounters counters : owned) {
            Lease lease = counters.lease(route);
            surrendered += lease != null ? lease.surrender() : 0;
        }
        return surrendered;
    }

    /// How many threads' counters there are; never fewer later.
    int count() {
        return SHARED_COUNTERS + owned.length;
    }

    /// One of them.
    ThreadCounters counters(int number) {
        return number < SHARED_COUNTERS ? shared[number] : owned[number - SHARED_COUNTERS];
    }

    /// Blocks of a route that are counted alive.
    long live(Route route) {
        long live = 0;
        for (ThreadCounters counters : owned) {
            live += counters.live(route);
        }
        for (ThreadCounters counters : shared) {
            live += counters.live(route);
        }
        return live;
    }

    TallySum sum(Route route) {
        TallySum sum = new TallySum();
        addTo(sum, route);
        return sum;
    }

    void addTo(TallySum sum, Route route) {
        for (ThreadCounters counters : owned) {
            counters.addTo(sum, route);
        }
        for (ThreadCounters counters : shared) {
            counters.addTo(sum, route);
        }
    }
}
