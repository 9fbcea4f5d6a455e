package io.cistern.caching;

/// A number that goes up and down, the most it was, and all that was ever added. Plain fields, guarded by whatever
/// guards the owner: it costs an addition.
///
/// For the peak over many owners a gauge *leases* from a [SharedPeak], in chunks: `current ≤ leased`, and at most two
/// chunks of a lease are unused. So the shared number changes seldom, and is never too low.
///
/// ```
/// freed = added − current        leased = what this gauge has of the shared number
/// ```
final class Gauge {
    private final SharedPeak shared;
    private final long chunk;
    private long current;
    private long peak;
    private long added;
    private long leased;

    /// Makes a gauge at 0.
    ///
    /// @param chunk the unit of leases; 1 makes the shared peak exact, at the price of an atomic addition a
    ///     change
    Gauge(SharedPeak shared, long chunk) {
        this.shared = shared;
        this.chunk = chunk;
    }

    void add(long amount) {
        added += amount;
        current += amount;
        if (current > leased) {
            lease();
        }
        if (current > peak) {
            peak = current;
        }
    }

    void remove(long amount) {
        current -= amount;
        if (leased - current > 2 * chunk && leased != 0) {
            giveBack();
        }
    }

    private void lease() {
        long wanted = Sizes.roundUp(current, chunk);
        shared.add(wanted - leased);
        leased = wanted;
    }

    private void giveBack() {
        long kept = Sizes.roundUp(Math.max(0, current), chunk);
        shared.add(kept - leased);
        leased = kept;
    }

    /// Gives the whole lease back, the number being 0 for good.
    void end() {
        shared.add(-leased);
        leased = 0;
    }

    void resetPeak() {
        peak = current;
    }

    long current() {
        return current;
    }

    long peak() {
        return peak;
    }

    long added() {
        return added;
    }
}
