package io.cistern.internal.routing;

import java.util.Arrays;
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

    private final AtomicLong leased = new AtomicLong();

    /// The indices of the routes that count here.
    private volatile int[] routes = {};

    /// Replaced by a reset.
    private volatile PeakSince peak = new PeakSince();

    /// Leases bytes, or takes them back if negative.
    ///
    /// @return all that is leased now
    long lease(long byteSize) {
        return leased.addAndGet(byteSize);
    }

    /// Lets one more route count here.
    synchronized void counts(int route) {
        int[] more = Arrays.copyOf(routes, routes.length + 1);
        more[routes.length] = route;
        routes = more;
    }

    int[] routes() {
        return routes;
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
