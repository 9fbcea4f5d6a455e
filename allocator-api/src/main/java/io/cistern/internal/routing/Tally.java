package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import io.cistern.internal.threads.LinePadding;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// The counters of one thread for one route.
///
/// **Invariants**, summed over all threads of an idle route: attempts = allocations + failures;
/// allocations − frees = live blocks; requested = bytes of the live blocks; for each thread requested
/// ≤ ceiling.
///
/// **Requested** is the bytes that this thread allocated less those that it freed, so it may be negative. Up to
/// its **ceiling** the thread allocates without asking the route's [Meter], which keeps the common allocation
/// free of shared writes. Below its **floor** the thread lowers the ceiling. **Most** is the highest value of
/// `requested` since the thread last went beyond its ceiling or lowered it.
///
/// **Threads.** One thread at a time counts; readers see each counter untorn and without undue delay. The
/// ceiling changes by compare-and-set: any thread raises it; the thread that counts lowers it, or the
/// [Meter], which first claims it. After the claim the meter lets a fence pass over every thread
/// ([ProcessFence#everywhere]) and reads the requested bytes. So either the meter sees a concurrent
/// allocation, or that allocation sees the claim.
///
/// **Errors.** Any call may throw a StackOverflowError. A method that throws one has not counted; its caller
/// then counts by writes to the fields, which need no stack.
final class Tally extends LinePadding {
    /// Replaces a ceiling that the [Meter] has claimed: every allocation is beyond it.
    static final long CLAIMED = Long.MIN_VALUE / 2;

    private static final boolean FENCED_BY_OTHERS = ProcessFence.isSupported();

    private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
    private static final VarHandle ATTEMPTS = handle(LOOKUP, "attempts", long.class);
    private static final VarHandle FAILURES = handle(LOOKUP, "failures", long.class);
    private static final VarHandle ALLOCATIONS = handle(LOOKUP, "allocations", long.class);
    private static final VarHandle FREES = handle(LOOKUP, "frees", long.class);
    private static final VarHandle TOTAL_BYTES = handle(LOOKUP, "totalBytes", long.class);
    private static final VarHandle REQUESTED = handle(LOOKUP, "requested", long.class);
    private static final VarHandle MOST = handle(LOOKUP, "most", long.class);
    private static final VarHandle CEILING = handle(LOOKUP, "ceiling", long.class);
    private static final VarHandle FLOOR = handle(LOOKUP, "floor", long.class);

    final Route route;

    /// The route's index.
    final int index;

    /// The bytes that this thread leased of the route's budgets; null if there are none.
    final @Nullable Lease lease;

    /// Raises the ceiling after an allocation that went beyond it, for any thread that is not inside counters.
    final Meter meter;
    long attempts;
    long failures;
    long allocations;
    long frees;
    private long totalBytes;
    long requested;
    private long most;

    @SuppressWarnings("unused") // through CEILING
    private long ceiling;

    @SuppressWarnings("unused") // through FLOOR
    private long floor;

    // Keeps later objects on the heap, and the fields above that are only read, out of these cache lines.
    @SuppressWarnings("unused")
    private long p1, p2, p3, p4, p5, p6, p7, p8;

    /// The ceiling that the meter claimed, or [#CLAIMED] if it has none. Guarded by the meter.
    private long claimed = CLAIMED;

    Tally(Route route) {
        this.route = route;
        this.index = route.index;
        this.meter = route.meter;
        this.lease = route.budgets != null ? new Lease(route) : null;
    }

    /// Counts the start of an allocation; [#allocated] or [#failed] counts its end.
    ///
    /// The store comes before the reads that follow, above all that of the route's `allocateTarget`: a thread
    /// that closes the route sees the attempt, or the attempt sees that the route is closed. A full fence here
    /// would cost too much. So the closing thread calls [ProcessFence#everywhere], and this method only keeps
    /// the compiler from reordering.
    void begins() {
        ATTEMPTS.setOpaque(this, attempts + 1);
        keepOrder();
    }

    /// Keeps a store before the reads that follow, for other threads that call [ProcessFence#everywhere].
    static void keepOrder() {
        if (FENCED_BY_OTHERS) {
            VarHandle.acquireFence();
        } else {
            VarHandle.fullFence();
        }
    }

    /// Counts an attempt that gave no block.
    void failed() {
        FAILURES.setRelease(this, failures + 1);
    }

    /// Returns whether an attempt is under way; for any thread. It reads the ends first, so that it never
    /// misses an attempt that began before.
    boolean isAllocating() {
        long ended = (long) ALLOCATIONS.getAcquire(this) + (long) FAILURES.getAcquire(this);
        return (long) ATTEMPTS.getAcquire(this) != ended;
    }

    /// Counts an allocation.
    ///
    /// @return whether the thread is beyond its ceiling. Then the caller leaves the counters, if they are
    ///     shared, and makes the [Meter] raise the ceiling
    boolean allocated(long byteSize) {
        long now = requested + byteSize;
        REQUESTED.setOpaque(this, now);
        keepOrder();
        boolean beyond = now > ceiling();
        if (beyond || now > most) {
            MOST.setOpaque(this, now);
        }
        TOTAL_BYTES.setOpaque(this, totalBytes + byteSize);
        ALLOCATIONS.setRelease(this, allocations + 1);
        return beyond;
    }

    /// Counts a free. The count comes last, so that a thread that sees it sees the bytes too.
    void freed(long byteSize) {
        long now = requested - byteSize;
        REQUESTED.setOpaque(this, now);
        if (now < (long) FLOOR.getOpaque(this)) {
            lower(now);
        }
        FREES.setRelease(this, frees + 1);
    }

    /// Counts bytes of blocks that were freed before.
    void released(long byteSize) {
        long now = requested - byteSize;
        REQUESTED.setOpaque(this, now);
        if (now < (long) FLOOR.getOpaque(this)) {
            lower(now);
        }
    }

    /// Gives back the bytes that the thread is not likely to need.
    private void lower(long now) {
        AtomicLong peak = meter.peak(); // before anything changes: a reset from here on begins with less
        long present = ceiling();
        long credit = meter.credit();
        long next = now + credit;
        if (next >= present) { // there is more room than before, or the ceiling is claimed
            FLOOR.setOpaque(this, now - credit);
        } else if (moveCeiling(present, next, 2 * credit)) {
            Meter.note(peak, meter.giveBack(present - next) - Math.max(0, present - most));
            MOST.setRelease(this, now);
        }
    }

    /// Sets another ceiling, unless another thread has changed it.
    ///
    /// @param credit how far below the ceiling the thread may fall before it lowers it again
    boolean moveCeiling(long present, long next, long credit) {
        if (!CEILING.compareAndSet(this, present, next)) {
            return false;
        }
        FLOOR.setOpaque(this, next - credit);
        return true;
    }

    long ceiling() {
        return (long) CEILING.getOpaque(this);
    }

    long requested() {
        return (long) REQUESTED.getOpaque(this);
    }

    /// Claims the ceiling, if the thread may allocate below it; for the meter, under its lock.
    ///
    /// @return false if the thread may not
    boolean claim() {
        if (ceiling() <= requested()) {
            return false;
        }
        claimed = (long) CEILING.getAndSet(this, CLAIMED);
        return true;
    }

    /// Sets the ceiling to the requested bytes, after it was claimed and a fence has passed.
    void lowerCeiling() {
        if (claimed != CLAIMED) {
            long now = Math.min(claimed, requested());
            long most = Math.max(now, (long) MOST.getOpaque(this));
            long ceiling = claimed;
            setClaimed(now);
            meter.lowered += ceiling - now;
            meter.unused += ceiling - most;
        }
    }

    /// Restores the ceiling, if it is still claimed.
    void giveUpClaim() {
        if (claimed != CLAIMED) {
            setClaimed(claimed);
        }
    }

    private void setClaimed(long next) {
        FLOOR.setOpaque(this, next); // so that the next free checks how much the thread may keep now
        CEILING.setVolatile(this, next);
        claimed = CLAIMED; // last, so that after an error the claim can be given up
    }

    /// Returns the number of blocks that the thread allocated; for any thread.
    long allocated() {
        return (long) ALLOCATIONS.getOpaque(this);
    }

    /// Returns the number of blocks that are counted as alive, reading frees first as in [#addTo]; for any
    /// thread.
    long live() {
        long freed = (long) FREES.getAcquire(this);
        return (long) ALLOCATIONS.getOpaque(this) - freed;
    }

    /// Adds these counters to a sum; for any thread.
    void addTo(TallySum sum) {
        // Frees first: a block freed in between then counts as live rather than as freed but never allocated.
        sum.frees += (long) FREES.getAcquire(this);
        sum.allocations += (long) ALLOCATIONS.getOpaque(this);
        sum.totalBytes += (long) TOTAL_BYTES.getOpaque(this);
        sum.requestedBytes += requested();
        long highest = (long) MOST.getAcquire(this);
        long present = ceiling();
        sum.ceilings += present;
        sum.unused = Math.max(sum.unused, present - highest);
    }
}
