package io.cistern.caching;

/// What one lane counts of one device's blocks, of one kind of size. Plain fields that only the lane's owner writes;
/// others read them a little late.
///
/// A lane takes blocks from shards in batches, and those count as allocated there. So for programs:
///
/// ```
/// allocated now    = allocated from shards now − held
/// allocations ever = allocations from shards ever − refills + hits
/// ```
final class LaneCounters {
    final boolean small;
    /// Requests served from what the lane held.
    long hits;
    long hitBytes;
    /// Requests that it had no block for.
    long misses;
    /// Blocks taken from shards to be held, not for a request at once.
    long refills;
    long refillBytes;
    /// Blocks held now.
    long held;
    long heldBytes;
    /// Bytes that callers asked for in hits, and freed into the lane.
    long requestedBytes;
    long returnedBytes;

    LaneCounters(boolean small) {
        this.small = small;
    }

    /// Adds this to what shards counted.
    void addTo(ShardTotals totals) {
        totals.addLane(CacheStat.ALLOCATION, -held, hits - refills);
        totals.addLane(CacheStat.ACTIVE, -held, hits - refills);
        totals.addLane(CacheStat.ALLOCATED_BYTES, -heldBytes, hitBytes - refillBytes);
        totals.addLane(CacheStat.ACTIVE_BYTES, -heldBytes, hitBytes - refillBytes);
        totals.addLane(CacheStat.REQUESTED_BYTES, requestedBytes - returnedBytes, requestedBytes);
    }
}
