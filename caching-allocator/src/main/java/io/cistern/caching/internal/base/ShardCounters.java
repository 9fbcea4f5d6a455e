package io.cistern.caching.internal.base;

import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;

/// Counts the blocks and bytes of one shard. Guarded by the shard's lock.
///
/// ```
/// active = allocated + waiting
/// ```
///
/// Few blocks wait for another stream, so only these are counted beside the allocated ones, and most
/// allocations count no active blocks at all.
public final class ShardCounters {
    private final Map<CacheStat, Gauge> gauges = new EnumMap<>(CacheStat.class);
    private final Gauge allocation;
    public final Gauge allocatedBytes;
    /// Bytes that callers requested, out of those allocated.
    public final Gauge requestedBytes;
    /// Bytes of memory, from the driver or from other shards.
    public final Gauge reservedBytes;
    private final Gauge waiting;
    private final Gauge waitingBytes;
    private final Gauge pieces;
    private final Gauge pieceBytes;
    private final DeviceCounters device;
    /// Searches that found a block, and those that did not.
    public long hits;
    public long misses;
    /// The peak since the last reset, taken only while blocks waited.
    private long activePeak;
    private long activeBytesPeak;

    public ShardCounters(boolean small, DeviceCounters device) {
        this.device = device;
        for (CacheStat stat : CacheStat.values()) {
            gauges.put(stat, new Gauge(device.peak(stat, small), stat.chunk(small)));
        }
        allocation = gauge(CacheStat.ALLOCATION);
        allocatedBytes = gauge(CacheStat.ALLOCATED_BYTES);
        requestedBytes = gauge(CacheStat.REQUESTED_BYTES);
        reservedBytes = gauge(CacheStat.RESERVED_BYTES);
        waiting = gauge(CacheStat.ACTIVE);
        waitingBytes = gauge(CacheStat.ACTIVE_BYTES);
        pieces = gauge(CacheStat.INACTIVE_SPLIT);
        pieceBytes = gauge(CacheStat.INACTIVE_SPLIT_BYTES);
    }

    /// Returns the gauge of a statistic; for the two active ones it counts only the blocks that wait.
    public Gauge gauge(CacheStat stat) {
        return Objects.requireNonNull(gauges.get(stat));
    }

    public void allocated(long byteSize) {
        allocation.add(1);
        allocatedBytes.add(byteSize);
        if (waiting.current() != 0) {
            activePeak = Math.max(activePeak, allocation.current() + waiting.current());
            activeBytesPeak = Math.max(activeBytesPeak, allocatedBytes.current() + waitingBytes.current());
        }
    }

    public void freed(long byteSize) {
        allocation.remove(1);
        allocatedBytes.remove(byteSize);
    }

    /// Counts a block that was freed and waits for another stream.
    public void waits(long byteSize) {
        waiting.add(1);
        waitingBytes.add(byteSize);
    }

    public void waited(long byteSize) {
        waiting.remove(1);
        waitingBytes.remove(byteSize);
    }

    public void pieceFreed(long byteSize) {
        pieces.add(1);
        pieceBytes.add(byteSize);
    }

    /// Counts a free part of a plain segment that was taken or merged.
    public void pieceTaken(long byteSize) {
        pieces.remove(1);
        pieceBytes.remove(byteSize);
    }

    public void grown(long byteSize) {
        reservedBytes.add(byteSize);
        device.count(CacheEvent.DEVICE_ALLOC);
        gauge(CacheStat.SEGMENT).add(1);
    }

    /// Counts memory that went back to the driver.
    ///
    /// @param segment whether it was a plain segment
    public void shrunk(long byteSize, boolean segment) {
        reservedBytes.remove(byteSize);
        device.count(CacheEvent.DEVICE_FREE);
        if (segment) {
            gauge(CacheStat.SEGMENT).remove(1);
        }
    }

    public void resetPeaks() {
        gauges.values().forEach(Gauge::resetPeak);
        activePeak = allocation.current() + waiting.current();
        activeBytesPeak = allocatedBytes.current() + waitingBytes.current();
    }

    long current(CacheStat stat) {
        return switch (stat) {
            case ACTIVE -> allocation.current() + waiting.current();
            case ACTIVE_BYTES -> allocatedBytes.current() + waitingBytes.current();
            default -> gauge(stat).current();
        };
    }

    long peak(CacheStat stat) {
        return switch (stat) {
            case ACTIVE -> Math.max(allocation.peak(), activePeak);
            case ACTIVE_BYTES -> Math.max(allocatedBytes.peak(), activeBytesPeak);
            default -> gauge(stat).peak();
        };
    }

    long added(CacheStat stat) {
        return switch (stat) {
            case ACTIVE -> allocation.added();
            case ACTIVE_BYTES -> allocatedBytes.added();
            default -> gauge(stat).added();
        };
    }
}
