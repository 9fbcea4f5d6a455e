package io.cistern.caching;

/// A number that goes up and down, the most it was, and all that was ever added. Plain fields, guarded by whatever
/// guards the owner: a change costs one store.
///
/// For the peak over many owners a gauge *leases* from a [SharedPeak], in chunks: `current ≤ leased`, and at most
/// two chunks of a lease are unused. So the shared number changes seldom, and is never too low. A gauge may be below
/// 0, where others count what it takes away: its lease is negative then.
///
/// ```
/// current = added − removed      leased = what this gauge has of the shared number
/// ```
final class Gauge {
    private final SharedPeak shared;
    private final long chunk;
    private long added;
    private long removed;
    private long peak;
    private long leased;
    /// Above this, [#add] has more to do: the smaller of the peak and the lease.
    private long ceiling;
    /// Below this, [#remove] has: so much of the lease would be unused.
    private long floor;

    /// Makes a gauge at 0.
    ///
    /// @param chunk the unit of leases; 1 makes the shared peak exact, at the price of an atomic addition a
    ///     change
    Gauge(SharedPeak shared, long chunk) {
        this.shared = shared;
        this.chunk = chunk;
        this.floor = -2 * chunk;
    }

    void add(long amount) {
        long sum = added + amount;
        added = sum;
        if (sum - removed > ceiling) {
            rise(sum - removed);
        }
    }

    void remove(long amount) {
        long sum = removed + amount;
        removed = sum;
        if (added - sum < floor) {
            lease(Sizes.roundUp(added - sum, chunk));
        }
    }

    private void rise(long now) {
        if (now > leased) {
            lease(Sizes.roundUp(now, chunk));
        }
        peak = Math.max(peak, now);
        ceiling = Math.min(peak, leased);
    }

    private void lease(long wanted) {
        shared.add(wanted - leased);
        leased = wanted;
        ceiling = Math.min(peak, leased);
        floor = leased - 2 * chunk;
    }

    /// Leases just what the number is, which it is for good.
    void end() {
        lease(current());
    }

    void resetPeak() {
        peak = current();
        ceiling = Math.min(peak, leased);
    }

    long current() {
        return added - removed;
    }

    long peak() {
        return peak;
    }

    long added() {
        return added;
    }
}
