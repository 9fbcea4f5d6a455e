package io.cistern.caching.internal.base;

/// A number that goes up and down, the most it was, and all that was ever added. Plain fields, guarded by whatever
/// guards the owner: a change costs one store.
///
/// For the peak over many owners a gauge *leases* from a [SharedPeak], in steps: `current ≤ leased`, and at most
/// two steps of a lease are unused. So the shared number changes seldom, and is never too low. A gauge may be below
/// 0, where others count what it takes away: its lease is negative then.
///
/// ```
/// current = added − removed      leased = what this gauge has of the shared number
/// step    = a chunk, or of a large peak the power of two from its 64th to its 32nd
/// ```
public final class Gauge {
    /// Blocks that are large beside a chunk would else change the shared number each time.
    private static final int STEP_SHIFT = 5;

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
    public Gauge(SharedPeak shared, long chunk) {
        this.shared = shared;
        this.chunk = chunk;
        this.floor = -2 * chunk;
    }

    public void add(long amount) {
        long sum = added + amount;
        added = sum;
        if (sum - removed > ceiling) {
            rise(sum - removed);
        }
    }

    public void remove(long amount) {
        long sum = removed + amount;
        removed = sum;
        if (added - sum < floor) {
            lease(added - sum);
        }
    }

    private void rise(long now) {
        if (now > leased) {
            lease(now);
        }
        peak = Math.max(peak, now);
        ceiling = Math.min(peak, leased);
    }

    private void lease(long wanted) {
        long step = Math.max(chunk, Long.highestOneBit(peak) >>> STEP_SHIFT);
        setLease(Sizes.roundUp(wanted, step));
        ceiling = Math.min(peak, leased);
        floor = leased - 2 * step;
    }

    private void setLease(long wanted) {
        shared.add(wanted - leased);
        leased = wanted;
    }

    /// Leases just what the number is, which it is for good.
    void end() {
        setLease(current());
    }

    public void resetPeak() {
        peak = current();
        ceiling = Math.min(peak, leased);
    }

    public long current() {
        return added - removed;
    }

    long peak() {
        return peak;
    }

    long added() {
        return added;
    }
}
