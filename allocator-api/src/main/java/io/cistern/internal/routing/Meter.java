package io.cistern.internal.routing;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/// The bytes of one allocator on one device that lanes have leased, and the most that were requested since the last
/// reset.
///
/// **Invariant**: leased = requested bytes + the credit of all lanes. So `leased` is never too low, and at most
/// lanes × [#MAX_CREDIT] too high.
final class Meter {
    /// What a lane leases beyond its need: a mix of blocks up to 1 MiB then rarely comes back for more.
    static final long CHUNK = 2L << 20;

    /// Credit above this goes back. Twice the chunk, so that a thread that frees and allocates in turn does
    /// neither.
    static final long MAX_CREDIT = 2 * CHUNK;

    final int device;
    private final ReservedBytes told;
    private final AtomicLong leased = new AtomicLong();

    /// Those for which this meter counts. Written by [Thresholds].
    volatile Threshold[] thresholds = {};

    /// The routes that count here and have not drained. Guarded by this.
    private final List<Route> routes = new ArrayList<>();

    /// What those counted that have. Guarded by this.
    private final TallySum drained = new TallySum();

    /// Replaced by a reset.
    private volatile PeakSince peak = new PeakSince();

    /// @param told what the allocator tells of the memory that it holds
    Meter(int device, ReservedBytes told) {
        this.device = device;
        this.told = told;
    }

    /// Leases bytes, or takes them back if negative.
    ///
    /// @return all that is leased now
    long lease(long byteSize) {
        long now = leased.addAndGet(byteSize);
        moved();
        return now;
    }

    /// Has thresholds looked at.
    void moved() {
        for (Threshold threshold : thresholds) {
            threshold.moved();
        }
    }

    /// Bytes that the allocator holds, as far as it tells; else what is leased.
    long reserved() {
        return told.isTold(device) ? told.bytes(device) : leased();
    }

    /// Lets one more route count here.
    synchronized void counts(Route route) {
        routes.add(route);
    }

    /// Keeps what a route counted that has no live block and will have none.
    ///
    /// @return whether it was the last one
    synchronized boolean retire(Route route) {
        if (!routes.remove(route)) {
            return false;
        }
        TallySum last = route.lanes.sum(route);
        lease(-last.credit);
        last.credit = 0;
        drained.add(last);
        return routes.isEmpty();
    }

    /// The counters of all routes that ever counted here.
    synchronized TallySum sum() {
        TallySum sum = new TallySum();
        sum.add(drained);
        for (Route route : routes) {
            route.lanes.addTo(sum, route);
        }
        return sum;
    }

    /// Begins a new peak. The caller then lets its own lane begin anew, which bounds what is requested until
    /// any lane changes the meter.
    void resetPeak() {
        peak = new PeakSince();
    }

    long leased() {
        return leased.get();
    }

    PeakSince peak() {
        return peak;
    }
}
