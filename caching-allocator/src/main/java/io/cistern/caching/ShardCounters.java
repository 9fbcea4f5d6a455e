package io.cistern.caching;

/// What one shard counts, guarded by its lock, which it holds anyway.
///
/// ```
/// active = allocated + freed and waiting for another stream
/// ```
final class ShardCounters {
    private final Gauge[] gauges = new Gauge[CacheStat.values().length];
    private final Gauge allocation;
    private final Gauge allocatedBytes;
    private final Gauge requestedBytes;
    private final Gauge active;
    private final Gauge activeBytes;
    private final Gauge pieces;
    private final Gauge pieceBytes;
    private final DeviceCounters device;
    private final long oversizeBytes;
    private long hits;
    private long misses;

    ShardCounters(boolean small, DeviceCounters device) {
        this.device = device;
        this.oversizeBytes = device.oversizeBytes;
        for (CacheStat stat : CacheStat.values()) {
            gauges[stat.ordinal()] = new Gauge(device.peak(stat, small), stat.chunk(small));
        }
        allocation = gauge(CacheStat.ALLOCATION);
        allocatedBytes = gauge(CacheStat.ALLOCATED_BYTES);
        requestedBytes = gauge(CacheStat.REQUESTED_BYTES);
        active = gauge(CacheStat.ACTIVE);
        activeBytes = gauge(CacheStat.ACTIVE_BYTES);
        pieces = gauge(CacheStat.INACTIVE_SPLIT);
        pieceBytes = gauge(CacheStat.INACTIVE_SPLIT_BYTES);
    }

    Gauge gauge(CacheStat stat) {
        return gauges[stat.ordinal()];
    }

    /// A block was handed out.
    void allocated(long byteSize) {
        allocation.add(1);
        allocatedBytes.add(byteSize);
        active.add(1);
        activeBytes.add(byteSize);
        if (byteSize >= oversizeBytes) {
            gauge(CacheStat.OVERSIZE_ALLOCATIONS).add(1);
        }
    }

    /// A block was freed; it is still active.
    void freed(long byteSize) {
        allocation.remove(1);
        allocatedBytes.remove(byteSize);
        if (byteSize >= oversizeBytes) {
            gauge(CacheStat.OVERSIZE_ALLOCATIONS).remove(1);
        }
    }

    /// Nobody uses a freed block any more.
    void settled(long byteSize) {
        active.remove(1);
        activeBytes.remove(byteSize);
    }

    /// A caller got so many bytes of those [allocated][#allocated].
    void requested(long byteSize) {
        requestedBytes.add(byteSize);
    }

    /// A caller freed so many bytes.
    void returned(long byteSize) {
        requestedBytes.remove(byteSize);
    }

    /// A search went well, or not.
    void searched(boolean found) {
        if (found) {
            hits++;
        } else {
            misses++;
        }
    }

    /// A part of a plain segment became free.
    void pieceFreed(long byteSize) {
        pieces.add(1);
        pieceBytes.add(byteSize);
    }

    /// A free part of a plain segment was taken or joined.
    void pieceTaken(long byteSize) {
        pieces.remove(1);
        pieceBytes.remove(byteSize);
    }

    /// Memory came.
    ///
    /// @param segment whether as a plain segment
    void grown(long byteSize, boolean segment) {
        gauge(CacheStat.RESERVED_BYTES).add(byteSize);
        device.count(CacheEvent.DEVICE_ALLOC);
        if (segment) {
            gauge(CacheStat.SEGMENT).add(1);
            if (byteSize >= oversizeBytes) {
                gauge(CacheStat.OVERSIZE_SEGMENTS).add(1);
            }
        }
    }

    /// Memory went.
    ///
    /// @param segment whether as a plain segment
    void shrunk(long byteSize, boolean segment) {
        gauge(CacheStat.RESERVED_BYTES).remove(byteSize);
        device.count(CacheEvent.DEVICE_FREE);
        if (segment) {
            gauge(CacheStat.SEGMENT).remove(1);
            if (byteSize >= oversizeBytes) {
                gauge(CacheStat.OVERSIZE_SEGMENTS).remove(1);
            }
        }
    }

    void resetPeaks() {
        for (Gauge gauge : gauges) {
            gauge.resetPeak();
        }
    }

    long hits() {
        return hits;
    }

    long misses() {
        return misses;
    }
}
