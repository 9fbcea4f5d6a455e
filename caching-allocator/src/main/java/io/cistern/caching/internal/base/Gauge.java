package io.cistern.caching.internal.base;

/// A number that goes up and down, its peak, and the sum of all additions. The fields are plain and guarded in
/// the same way as the owner, so a change costs one store.
///
/// For the peak over many owners, a gauge *leases* from a [SharedPeak] in steps: `current ≤ leased`, and at
/// most two steps of a lease are unused. So the shared number changes seldom and is never too low. A gauge is
/// below 0 if other gauges count the amounts that it removes; then its lease is negative.
///
/// ```
/// current = added − removed      leased = what this gauge has of the shared number
/// step    = a chunk, or of a large peak the power of two from its 64th to its 32nd
/// ```
public final class Gauge {
    /// The step grows with the peak; else amounts larger than a chunk would change the shared number each time.
    private static final int STEP_SHIFT = 5;

    private final SharedPeak shared;
    private final long chunk;
    private long added;
    private long removed;
    private long peak;
    private long leased;
    /// Above this value (the smaller of peak and lease) [#add] has to raise one of them.
    private long ceiling;
    /// Below this value too much of the lease is unused, and [#remove] gives some back.
    private long floor;

    /// @param chunk the unit of leases; 1 makes the shared peak exact, but then each change costs an atomic addition
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
        long more = Sizes.roundUp(wanted, step) - leased;
        shared.add(more);
        leased += more;
        ceiling = Math.min(peak, leased);
        floor = leased - 2 * step;
    }

    /// Sets the lease to the current number, which no longer changes.
    void end() {
        shared.add(current() - leased);
        leased = current();
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
