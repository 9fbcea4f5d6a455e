package io.cistern.internal.routing;

import java.util.concurrent.atomic.AtomicLong;

/// The bytes of one route: what lanes have leased, the most they ever had, and the device's limit behind it.
///
/// **Invariant**: leased = requested bytes + the credit of all lanes.
///
/// Without a limit, lanes lease in chunks, so `leased` is at most lanes × [#MAX_CREDIT] above what is requested, and so is its
/// peak. With a limit, lanes lease exactly what they need and keep no credit: the limit is never exceeded and nothing that
/// fits is refused.
final class Meter {
    /// What a lane leases beyond its need: a mix of blocks up to 1 MiB then rarely comes back for more.
    static final long CHUNK = 2L << 20;

    /// Credit above this goes back. Twice the chunk, so that a thread that frees and allocates in turn does neither.
    static final long MAX_CREDIT = 2 * CHUNK;

    private final AtomicLong leased = new AtomicLong();
    private final AtomicLong peak = new AtomicLong();
    private final Budget budget;

    Meter(Budget budget) {
        this.budget = budget;
    }

    boolean isLimited() {
        return budget.isLimited();
    }

    /// Leases at least `byteSize` bytes.
    ///
    /// @return what was leased beyond them, or −1 if the limit does not allow it
    long lease(long byteSize) {
        if (!budget.tryTake(byteSize)) {
            return -1;
        }
        long beyond = budget.isLimited() || byteSize > CHUNK ? 0 : CHUNK;
        long now = leased.addAndGet(byteSize + beyond);
        if (now > peak.get()) {
            peak.accumulateAndGet(now, Math::max);
        }
        return beyond;
    }

    /// Takes credit back from a lane.
    ///
    /// @return the credit the lane keeps
    long giveBack(long credit) {
        long keep = budget.isLimited() ? 0 : Math.min(credit, CHUNK);
        leased.addAndGet(keep - credit);
        budget.giveBack(credit - keep);
        return keep;
    }

    /// The limit and how much of it is used, for messages.
    String describeLimit() {
        return "limit of " + budget.limitBytes() + " bytes, " + budget.usedBytes() + " of them in use";
    }

    long peak() {
        return peak.get();
    }
}
