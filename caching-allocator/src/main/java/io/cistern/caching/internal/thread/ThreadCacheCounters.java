package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.CacheStat;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.Gauge;
import io.cistern.caching.internal.base.ShardTotals;

/// Counts for one thread cache, separately for small and for large blocks. Plain fields, guarded by the entry
/// of the thread cache; other threads read them a little late.
///
/// Shards count the blocks that a thread cache holds as allocated. So for programs:
///
/// ```
/// allocated now    = allocated from shards now − held
/// allocations ever = allocations from shards ever − refills + hits
/// requested now    = Σ requested of shards + Σ requested of thread caches
/// ```
///
/// A thread cache's part of the last sum may be negative, if bytes requested through one are freed into another.
/// The held blocks are not counted here, since a walk finds them; hits of stacks are counted in [ThreadCacheBins].
final class ThreadCacheCounters {
    /// Bytes of requests that the thread cache served, less those of blocks that callers freed into it.
    final Gauge requested;
    private long hits;
    private long hitBytes;
    long misses;
    private long refills;
    private long refillBytes;

    ThreadCacheCounters(boolean small, DeviceCounters device) {
        CacheStat stat = CacheStat.REQUESTED_BYTES;
        requested = new Gauge(device.peak(stat, small), stat.chunk(small));
    }

    /// Counts blocks that were served from the thread cache, but not from a stack that still exists.
    void hit(long blocks, long byteSize) {
        hits += blocks;
        hitBytes += blocks * byteSize;
    }

    /// Counts blocks fetched from a shard to be kept, not to serve a request at once.
    void refilled(long blocks, long byteSize) {
        refills += blocks;
        refillBytes += blocks * byteSize;
    }

    void addTo(ShardTotals totals) {
        totals.servedByThreadCaches(hits - refills, hitBytes - refillBytes);
        totals.add(CacheStat.REQUESTED_BYTES, requested);
        totals.threadCacheHits += hits;
        totals.threadCacheMisses += misses;
    }
}
