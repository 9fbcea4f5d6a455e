package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Finds the calling thread's lane.
///
/// A platform thread owns a lane. It is found in a table by the low bits of the thread's id, which costs one
/// read and one comparison. Each lane has two entries where it may stand, so that threads whose ids agree mostly find
/// theirs there; who finds both taken goes through a thread-local. When a thread ends, its lane waits with its
/// counters
/// for the next new thread, so there are never more lanes than
/// threads were alive at once. Virtual threads share a fixed number of lanes: each tries the one its id points
/// to and moves on when it is held.
final class Lanes {
    /// Large enough that busy threads rarely meet, small enough to stay in the cache.
    private static final int TABLE_SIZE = 1024;

    /// From one of a lane's entries to the other.
    private static final int SECOND = TABLE_SIZE / 2;

    private static final int SHARED_LANES =
            Integer.highestOneBit(4 * Runtime.getRuntime().availableProcessors());

    /// Read and written without order: a thread takes only a lane that bears its own id, which it wrote itself.
    final @Nullable Lane[] table = new Lane[TABLE_SIZE];

    /// Weak, since a lane leads to its device memory and so to this key: else what is closed would stay for as long
    /// as
    /// the threads that used it. [#owned] holds the lanes meanwhile.
    private final ThreadLocal<WeakReference<Lane>> mine =
            ThreadLocal.withInitial(() -> new WeakReference<>(adoptOrMake()));
    private final Lane[] shared = new Lane[SHARED_LANES];
    private volatile Lane[] owned = {};

    final Regions regions = new Regions(this);

    Lanes() {
        for (int i = 0; i < shared.length; i++) {
            shared[i] = new Lane();
        }
    }

    /// The calling thread's own lane, or null for a virtual thread.
    @Nullable
    Lane own() {
        return own(table);
    }

    /// As the other, for a caller that has the table already.
    @Nullable
    Lane own(@Nullable Lane[] table) {
        Thread thread = Thread.currentThread();
        long id = thread.threadId();
        Lane lane = table[entry(id)];
        return lane != null && lane.ownerId == id ? lane : find(thread);
    }

    private @Nullable Lane find(Thread thread) {
        int first = entry(thread.threadId());
        int second = first ^ SECOND;
        Lane there = table[second];
        if (there != null && there.ownerId == thread.threadId()) {
            return there;
        }
        if (thread.isVirtual()) {
            return null;
        }
        Lane lane = Objects.requireNonNull(mine.get().get());
        if (isFree(first)) {
            table[first] = lane;
        } else if (isFree(second)) {
            table[second] = lane;
        }
        return lane;
    }

    /// Whether no thread that runs finds its lane there: one that has a lane of an ended thread now finds it
    /// elsewhere.
    private boolean isFree(int at) {
        Lane there = table[at];
        return there == null || there.isOrphan() || (entry(there.ownerId) | SECOND) != (at | SECOND);
    }

    private static int entry(long threadId) {
        return (int) threadId & (TABLE_SIZE - 1);
    }

    /// A shared lane, entered; the caller leaves it.
    Lane enterShared() {
        int at = (int) Thread.currentThread().threadId();
        while (true) {
            Lane lane = shared[at++ & (SHARED_LANES - 1)];
            if (lane.tryEnter()) {
                return lane;
            }
            Thread.onSpinWait();
        }
    }

    private synchronized Lane adoptOrMake() {
        for (Lane lane : owned) {
            if (lane.isOrphan()) {
                lane.own(Thread.currentThread());
                lane.region = regions.inherited();
                return lane;
            }
        }
        Lane lane = new Lane();
        lane.own(Thread.currentThread());
        lane.region = regions.inherited();
        Lane[] more = Arrays.copyOf(owned, owned.length + 1);
        more[owned.length] = lane;
        owned = more;
        return lane;
    }

    /// Waits until the allocations through a route that began before it refused have ended. One under way may be
    /// waiting for the driver, so this sleeps rather than spins.
    void awaitAllocations(Route route) {
        if (ProcessFence.isSupported()) {
            ProcessFence.everywhere();
        }
        Lane mine = own();
        for (Lane lane : owned) {
            while (lane != mine && lane.isAllocating(route)) {
                pause();
            }
        }
        for (Lane lane : shared) {
            while (lane.isAllocating(route)) {
                pause();
            }
        }
    }

    /// Whether a virtual thread allocates through a route.
    boolean isAllocatingShared(Route route) {
        for (Lane lane : shared) {
            if (lane.isAllocating(route)) {
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
        for (Lane lane : owned) {
            Lease lease = lane.lease(route);
            credit += lease != null ? lease.credit() : 0;
        }
        return credit;
    }

    /// Claims the leases of a route; under the exclusive lock of [Budgets].
    ///
    /// @return whether they may have bytes to surrender
    boolean claimLeases(Route route) {
        boolean any = false;
        for (Lane lane : owned) {
            Lease lease = lane.lease(route);
            any |= lease != null && lease.claim();
        }
        return any;
    }

    /// Takes the credit of leases that were all claimed, when no owner is between its check and its write any more.
    ///
    /// @return bytes given back to the budgets
    long surrenderLeases(Route route) {
        long surrendered = 0;
        for (Lane lane : owned) {
            Lease lease = lane.lease(route);
            surrendered += lease != null ? lease.surrender() : 0;
        }
        return surrendered;
    }

    /// How many lanes there are; never fewer later.
    int count() {
        return SHARED_LANES + owned.length;
    }

    /// One of them.
    Lane lane(int number) {
        return number < SHARED_LANES ? shared[number] : owned[number - SHARED_LANES];
    }

    /// Blocks of a route that are counted alive.
    long live(Route route) {
        long live = 0;
        for (Lane lane : owned) {
            live += lane.live(route);
        }
        for (Lane lane : shared) {
            live += lane.live(route);
        }
        return live;
    }

    TallySum sum(Route route) {
        TallySum sum = new TallySum();
        addTo(sum, route);
        return sum;
    }

    void addTo(TallySum sum, Route route) {
        for (Lane lane : owned) {
            lane.addTo(sum, route);
        }
        for (Lane lane : shared) {
            lane.addTo(sum, route);
        }
    }
}
