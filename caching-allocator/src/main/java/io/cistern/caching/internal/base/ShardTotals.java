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
        sums.forEach((stat, sum) -> {
            sum.current += shard.current(stat);
            sum.added += shard.added(stat);
            sum.peak += shard.peak(stat);
        });
        hits += shard.hits;
        misses += shard.misses;
    }

    public void add(ShardTotals other) {
        sums.forEach((stat, sum) -> {
            sum.current += other.current(stat);
            sum.added += other.added(stat);
            sum.peak += other.peak(stat);
        });
        hits += other.hits;
        misses += other.misses;
        threadCacheHits += other.threadCacheHits;
        threadCacheMisses += other.threadCacheMisses;
    }

    /// Subtracts blocks that thread caches hold: see `ThreadCacheCounters`.
    public void heldByThreadCaches(long blocks, long bytes) {
        sum(CacheStat.ALLOCATION).current -= blocks;
        sum(CacheStat.ACTIVE).current -= blocks;
        sum(CacheStat.ALLOCATED_BYTES).current -= bytes;
        sum(CacheStat.ACTIVE_BYTES).current -= bytes;
    }

    /// Adds blocks that thread caches handed out, less those that they received.
    public void servedByThreadCaches(long blocks, long bytes) {
        sum(CacheStat.ALLOCATION).added += blocks;
        sum(CacheStat.ACTIVE).added += blocks;
        sum(CacheStat.ALLOCATED_BYTES).added += bytes;
        sum(CacheStat.ACTIVE_BYTES).added += bytes;
    }

    public void add(CacheStat stat, Gauge gauge) {
        sum(stat).current += gauge.current();
        sum(stat).added += gauge.added();
        sum(stat).peak += gauge.peak();
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

    /// The sum of the shards' own peaks, which is at least the peak of the sum.
    public long peak(CacheStat stat) {
        return sum(stat).peak;
    }

    void resetPeaks() {
        sums.values().forEach(sum -> sum.peak = sum.current);
    }
}
