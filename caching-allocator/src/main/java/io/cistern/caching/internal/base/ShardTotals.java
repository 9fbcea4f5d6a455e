package io.cistern.caching.internal.base;

import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;

/// Sums over shards and thread caches. Not thread-safe.
public final class ShardTotals {
    private static final class Sum {
        long current;
        long added;
        long peak;
    }

    private final Map<CacheStat, Sum> sums = new EnumMap<>(CacheStat.class);
    public long hits;
    public long misses;
    public long threadCacheHits;
    public long threadCacheMisses;

    public ShardTotals() {
        for (CacheStat stat : CacheStat.values()) {
            sums.put(stat, new Sum());
        }
    }

    public ShardTotals(ShardTotals other) {
        this();
        add(other);
    }

    /// Adds a shard's counts; the caller holds the shard's lock, or the shard is gone.
    public void add(ShardCounters shard) {
        sums.keySet().forEach(stat -> add(stat, shard.current(stat), shard.added(stat), shard.peak(stat)));
        hits += shard.hits;
        misses += shard.misses;
    }

    public void add(ShardTotals other) {
        other.sums.forEach((stat, sum) -> add(stat, sum.current, sum.added, sum.peak));
        hits += other.hits;
        misses += other.misses;
        threadCacheHits += other.threadCacheHits;
        threadCacheMisses += other.threadCacheMisses;
    }

    /// Subtracts blocks that thread caches hold: see `ThreadCacheCounters`.
    public void heldByThreadCaches(long blocks, long bytes) {
        add(CacheStat.ALLOCATION, -blocks, 0, 0);
        add(CacheStat.ACTIVE, -blocks, 0, 0);
        add(CacheStat.ALLOCATED_BYTES, -bytes, 0, 0);
        add(CacheStat.ACTIVE_BYTES, -bytes, 0, 0);
    }

    /// Adds blocks that thread caches handed out, less those that they received.
    public void servedByThreadCaches(long blocks, long bytes) {
        add(CacheStat.ALLOCATION, 0, blocks, 0);
        add(CacheStat.ACTIVE, 0, blocks, 0);
        add(CacheStat.ALLOCATED_BYTES, 0, bytes, 0);
        add(CacheStat.ACTIVE_BYTES, 0, bytes, 0);
    }

    public void add(CacheStat stat, Gauge gauge) {
        add(stat, gauge.current(), gauge.added(), gauge.peak());
    }

    private void add(CacheStat stat, long current, long added, long peak) {
        Sum sum = sum(stat);
        sum.current += current;
        sum.added += added;
        sum.peak += peak;
    }

    private Sum sum(CacheStat stat) {
        return Objects.requireNonNull(sums.get(stat));
    }

    public long current(CacheStat stat) {
        return sum(stat).current;
    }

    public long added(CacheStat stat) {
        return sum(stat).added;
    }

    /// Returns the sum of the shards' own peaks, which is at least the peak of the sum.
    public long peak(CacheStat stat) {
        return sum(stat).peak;
    }

    void resetPeaks() {
        sums.values().forEach(sum -> sum.peak = sum.current);
    }
}
