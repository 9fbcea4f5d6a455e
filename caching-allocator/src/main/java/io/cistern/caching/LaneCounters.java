package io.cistern.caching;

/// What one lane counts, of small or of large blocks. Plain fields, guarded by the entry of the lane; others read
/// them a little late.
///
/// For shards, what a lane holds is allocated. So for programs:
///
/// ```
/// allocated now    = allocated from shards now − held
/// allocations ever = allocations from shards ever − refills + hits
/// requested now    = Σ requested of shards + Σ requested of lanes
/// ```
///
/// A part of the last sum may be below 0: what is asked for here is freed there. What is held is not counted, since
/// a walk tells.
final class LaneCounters {
    private final Gauge requested;
    private long hits;
    private long hitBytes;
    private long misses;
    private long refills;
    private long refillBytes;

    LaneCounters(boolean small, DeviceCounters device) {
        CacheStat stat = CacheStat.REQUESTED_BYTES;
        requested = new Gauge(device.peak(stat, small), stat.chunk(small));
    }

    /// A request was served from what the lane held.
    void hit(long byteSize, long asked) {
        hits++;
        hitBytes += byteSize;
        requested.add(asked);
    }

    /// There was no block for a request.
    void missed() {
        misses++;
    }

    /// A caller freed so many bytes into the lane.
    void returned(long asked) {
        requested.remove(asked);
    }

    /// Blocks came from a shard to be held, not for a request at once.
    void refilled(long blocks, long byteSize) {
        refills += blocks;
        refillBytes += blocks * byteSize;
    }

    /// Adds this to what shards counted.
    ///
    /// @param held blocks that the lane holds now
    void addTo(ShardTotals totals, long held, long heldBytes) {
        totals.addLane(CacheStat.ALLOCATION, -held, hits - refills);
        totals.addLane(CacheStat.ACTIVE, -held, hits - refills);
        totals.addLane(CacheStat.ALLOCATED_BYTES, -heldBytes, hitBytes - refillBytes);
        totals.addLane(CacheStat.ACTIVE_BYTES, -heldBytes, hitBytes - refillBytes);
        totals.add(CacheStat.REQUESTED_BYTES, requested);
        totals.laneHits += hits;
        totals.laneMisses += misses;
    }

    void resetPeak() {
        requested.resetPeak();
    }
}
