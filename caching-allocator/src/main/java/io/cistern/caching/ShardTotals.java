package io.cistern.caching;

import java.util.Arrays;

/// Sums of what shards counted. Not thread-safe.
final class ShardTotals {
    private final long[] current;
    private final long[] added;
    private final long[] peak;
    long hits;
    long misses;

    ShardTotals() {
        int stats = CacheStat.values().length;
        current = new long[stats];
        added = new long[stats];
        peak = new long[stats];
    }

    ShardTotals(ShardTotals other) {
        current = other.current.clone();
        added = other.added.clone();
        peak = other.peak.clone();
        hits = other.hits;
        misses = other.misses;
    }

    /// Adds what a shard counted; under its lock, or when it is gone.
    void add(ShardCounters shard) {
        for (CacheStat stat : CacheStat.values()) {
            Gauge gauge = shard.gauge(stat);
            current[stat.ordinal()] += gauge.current();
            added[stat.ordinal()] += gauge.added();
            peak[stat.ordinal()] += gauge.peak();
        }
        hits += shard.hits();
        misses += shard.misses();
    }

    /// Adds other sums.
    void add(ShardTotals other) {
        for (int i = 0; i < current.length; i++) {
            current[i] += other.current[i];
            added[i] += other.added[i];
            peak[i] += other.peak[i];
        }
        hits += other.hits;
        misses += other.misses;
    }

    /// Corrects for what lanes hold and hand out: see [LaneCounters].
    void addLane(CacheStat stat, long nowMore, long addedMore) {
        current[stat.ordinal()] += nowMore;
        added[stat.ordinal()] += addedMore;
    }

    long current(CacheStat stat) {
        return current[stat.ordinal()];
    }

    long added(CacheStat stat) {
        return added[stat.ordinal()];
    }

    /// The sum of the shards' own peaks: not less than the peak of the sum.
    long peak(CacheStat stat) {
        return peak[stat.ordinal()];
    }

    void resetPeaks() {
        Arrays.fill(peak, 0);
    }
}
