package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.CacheStat;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.Gauge;
import io.cistern.caching.internal.base.ShardTotals;

/// What one thread cache counts, of small or of large blocks. Plain fields, guarded by the entry of the thread
/// cache; others read them a little late.
///
/// For shards, what a thread cache holds is allocated. So for programs:
///
/// ```
/// allocated now    = allocated from shards now − held
/// allocations ever = allocations from shards ever − refills + hits
/// requested now    = Σ requested of shards + Σ requested of thread caches
/// ```
///
/// A part of the last sum may be below 0: what is asked for here is freed there. What is held is not counted,
/// since a walk tells; and hits of stacks are counted [there][ThreadCacheBins].
final class ThreadCacheCounters {
    private final Gauge requested;
    private long hits;
    private long hitBytes;
    private long misses;
    private long refills;
    private long refillBytes;

    ThreadCacheCounters(boolean small, DeviceCounters device) {
        CacheStat stat = CacheStat.REQUESTED_BYTES;
        requested = new Gauge(device.peak(stat, small), stat.chunk(small));
    }

    /// A caller who asked for so many bytes was served by the thread cache.
    void took(long asked) {
        requested.add(asked);
    }

    /// A caller freed so many bytes into the thread cache.
    void gave(long asked) {
        requested.remove(asked);
    }

    /// Blocks came from here, but from no stack that is still there.
    void hit(long blocks, long byteSize) {
        hits += blocks;
        hitBytes += blocks * byteSize;
    }

    /// There was no block for a request.
    void missed() {
        misses++;
    }

    /// Blocks came from a shard to be held, not for a request at once.
    void refilled(long blocks, long byteSize) {
        refills += blocks;
        refillBytes += blocks * byteSize;
    }

    /// Adds this to what shards counted.
    void addTo(ShardTotals totals) {
        totals.servedByThreadCaches(hits - refills, hitBytes - refillBytes);
        totals.add(CacheStat.REQUESTED_BYTES, requested);
        totals.threadCacheHits += hits;
        totals.threadCacheMisses += misses;
    }

    void resetPeak() {
        requested.resetPeak();
    }
}
