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
/// a walk tells; and hits of stacks are counted [there][SizeStacks#hits].
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

    /// A caller who asked for so many bytes was served by the lane.
    void took(long asked) {
        requested.add(asked);
    }

    /// A caller freed so many bytes into the lane.
    void gave(long asked) {
        requested.remove(asked);
    }

    /// A block came from here, but from no stack.
    void hit(long byteSize) {
        hits++;
        hitBytes += byteSize;
    }

    /// Counts what bins counted that are dropped.
    void add(LaneBins ended) {
        hits += ended.hits();
        hitBytes += ended.hitBytes();
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
        totals.servedByLanes(hits - refills, hitBytes - refillBytes);
        totals.add(CacheStat.REQUESTED_BYTES, requested);
        totals.laneHits += hits;
        totals.laneMisses += misses;
    }

    void resetPeak() {
        requested.resetPeak();
    }
}
