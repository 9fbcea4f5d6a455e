package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/// What one lane counts for one route.
///
/// **Invariants**, summed over all lanes of a route at rest: attempts = allocations + failures; allocations −
/// frees = live blocks; the meter's leased bytes − credit = requested bytes; for each lane 0 ≤ lowestCredit ≤
/// credit ≤ [Meter#MAX_CREDIT].
///
/// **Credit** is a part of the route's meter that this lane may count on without touching it, which keeps the common
/// allocation free of shared writes. **Leased then** is what the meter had leased in all when this lane changed it
/// last, and **lowest credit** the least this lane had since: leased then − lowest credit bounds the requested bytes
/// from above at every moment up to the next change of the meter by anybody, and equals their peak while no other
/// lane has credit. The bound counts for the [PeakSince] that was the meter's last when it began.
///
/// **Threads.** One thread writes at a time; readers see each counter whole and in time.
final class Tally extends LinePadding {
    private static final boolean FENCED_BY_OTHERS = ProcessFence.isSupported();

    private static final VarHandle ATTEMPTS = handle("attempts");
    private static final VarHandle FAILURES = handle("failures");
    private static final VarHandle ALLOCATIONS = handle("allocations");
    private static final VarHandle FREES = handle("frees");
    private static final VarHandle TOTAL_BYTES = handle("totalBytes");
    private static final VarHandle CREDIT = handle("credit");
    private static final VarHandle LOWEST_CREDIT = handle("lowestCredit");
    private static final VarHandle LEASED_THEN = handle("leasedThen");
    private static final VarHandle PEAK_THEN = handle("peakThen", PeakSince.class);

    final Route route;

    /// The route's.
    final int index;

    /// What this lane leased of the route's budgets; null without any.
    final @Nullable Lease lease;

    private final Meter meter;
    private long attempts;
    private long failures;
    private long allocations;
    private long frees;
    private long totalBytes;
    private long credit;
    private long lowestCredit;
    private long leasedThen;

    /// Written after the two that it is about, with release.
    private PeakSince peakThen;

    // Keeps what comes behind on the heap, and the fields above that are only read, out of these cache lines.
    @SuppressWarnings("unused")
    private long p1, p2, p3, p4, p5, p6, p7, p8;

    Tally(Route route) {
        this.route = route;
        this.index = route.index;
        this.meter = route.meter;
        this.peakThen = meter.peak();
        this.lease = route.budgets != null ? new Lease(route) : null;
    }

    /// Says that an allocation begins; [#allocated] or [#failed] says that it ended.
    ///
    /// The store must come before the reads that follow, of the route's entrance above all, so that whoever
    /// closes the route either sees the attempt or is seen. A full fence would cost 6 ns; instead, the one who
    /// closes calls [ProcessFence#everywhere], and here only the compiler is told to keep the order.
    void begins() {
        ATTEMPTS.setOpaque(this, attempts + 1);
        if (FENCED_BY_OTHERS) {
            VarHandle.acquireFence();
        } else {
            VarHandle.fullFence();
        }
    }

    /// Counts an attempt that gave nothing.
    void failed() {
        FAILURES.setRelease(this, failures + 1);
    }

    /// Whether an attempt is under way; for any thread. What ended is read first, so that an attempt that began
    /// before is never missed.
    boolean isAllocating() {
        long ended = (long) ALLOCATIONS.getAcquire(this) + (long) FAILURES.getAcquire(this);
        return (long) ATTEMPTS.getAcquire(this) != ended;
    }

    /// Counts an allocation.
    void allocated(long byteSize) {
        long left = credit - byteSize;
        if (left < 0) {
            left = lease(byteSize);
        }
        CREDIT.setOpaque(this, left);
        if (left < lowestCredit) {
            LOWEST_CREDIT.setOpaque(this, left);
        }
        TOTAL_BYTES.setOpaque(this, totalBytes + byteSize);
        ALLOCATIONS.setRelease(this, allocations + 1);
    }

    /// Keeps the bytes of a free as credit, and counts it: last, so that whoever sees the count sees the bytes.
    void freed(long byteSize) {
        long more = credit + byteSize;
        CREDIT.setOpaque(this, more);
        if (more > Meter.MAX_CREDIT) {
            move(Meter.CHUNK - more);
        }
        FREES.setRelease(this, frees + 1);
    }

    private long lease(long byteSize) {
        move(byteSize - credit + (byteSize > Meter.CHUNK ? 0 : Meter.CHUNK));
        return credit - byteSize;
    }

    /// Moves bytes from the meter to this lane's credit, or back if negative.
    private void move(long byteSize) {
        peakThen.note(leasedThen - lowestCredit);
        LEASED_THEN.setOpaque(this, meter.lease(byteSize));
        CREDIT.setOpaque(this, credit + byteSize);
        LOWEST_CREDIT.setOpaque(this, credit);
        // Read after the lease: who replaced the peak before is seen, and who does after sees the lease.
        PEAK_THEN.setRelease(this, meter.peak());
    }

    /// Lets the bound begin anew, for the meter's last peak; for the lane's writer.
    void restartPeak() {
        move(0);
    }

    /// Adds these counters to a sum; for any thread.
    void addTo(TallySum sum) {
        // Frees first: a block freed in between then counts as live rather than as freed but never allocated.
        sum.frees += (long) FREES.getAcquire(this);
        sum.allocations += (long) ALLOCATIONS.getOpaque(this);
        sum.totalBytes += (long) TOTAL_BYTES.getOpaque(this);
        sum.credit += (long) CREDIT.getOpaque(this);
        if (PEAK_THEN.getAcquire(this) == meter.peak()) {
            sum.peak = Math.max(sum.peak, (long) LEASED_THEN.getOpaque(this) - (long) LOWEST_CREDIT.getOpaque(this));
        }
    }

    private static VarHandle handle(String field) {
        return handle(field, long.class);
    }

    private static VarHandle handle(String field, Class<?> type) {
        try {
            return MethodHandles.lookup().findVarHandle(Tally.class, field, type);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }
}
