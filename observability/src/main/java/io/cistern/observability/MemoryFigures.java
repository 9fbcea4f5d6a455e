package io.cistern.observability;

import io.cistern.Allocator;
import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cuda.CudaDriver;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.internal.names.Known;
import io.cistern.spi.MemoryStatistics;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.IntStream;

/// Holds the figures of a whole [DeviceMemory] at one time, by device and by allocator, so that a monitor
/// reads all of them in one call. All parts are plain numbers and texts, so JMX transfers them unchanged.
///
/// Figures are weakly consistent while other threads allocate. A figure is [#UNKNOWN] if the allocator or
/// the driver does not report it, or fails to report it.
///
/// @param nanoTime the process's [System#nanoTime] at the time of reading, for computing rates from totals
/// @param devices the figures of each device, by ordinal
public record MemoryFigures(long nanoTime, List<OfDevice> devices) {
    /// The value of a figure that is unknown.
    public static final long UNKNOWN = -1;

    private static final String TIER_PREFIX = "tier.";
    private static final String HITS = ".hits";
    private static final String HIT_PERCENT = ".hit_percent";
    private static final String STRANDED_PREFIX = "stranded_bytes.";
    private static final String LARGEST_FREE = "largest_free_block";

    /// Holds the figures of one device.
    ///
    /// @param device the device's ordinal
    /// @param name the driver's name for the device; empty if the driver fails to report it
    /// @param totalBytes the size of the device's memory
    /// @param freeBytes bytes that no process uses, as the driver reports; unknown while this process does
    ///     not use the device, because a query would take memory there
    /// @param allocators the allocators and pools that are open or still have live blocks, in
    ///     the order of opening
    public record OfDevice(int device, String name, long totalBytes, long freeBytes, List<OfAllocator> allocators) {}

    /// Holds the figures of one allocator on one device: see [AllocatorStatistics] and [MemoryStatistics].
    ///
    /// @param id the allocator's number among those with the same name and pool, from 1; it stays the same
    ///     while the same allocators are open
    /// @param name the allocator's spec
    /// @param pool the pool's tag, or the pool's number if it has no tag; empty if the allocator belongs to
    ///     no pool
    /// @param current whether it is the current allocator of the device
    /// @param liveBlocks live blocks
    /// @param allocations allocations since the totals were last reset, or since the allocator was opened
    /// @param frees frees in the same period
    /// @param requestedBytes bytes requested for the live blocks
    /// @param requestedPeakBytes the highest value of `requestedBytes` since the peaks were last reset, or
    ///     since the allocator was opened
    /// @param requestedTotalBytes bytes requested in the counted `allocations`
    /// @param reservedBytes bytes that the allocator holds from the driver
    /// @param largestFreeBytes the size of the allocator's largest free block
    /// @param strandedBytes idle or waiting bytes kept for the stream that used them
    /// @param tiers the hit rate of each tier of the allocator's cache; empty if it has no such tiers
    public record OfAllocator(
            int id,
            String name,
            String pool,
            boolean current,
            long liveBlocks,
            long allocations,
            long frees,
            long requestedBytes,
            long requestedPeakBytes,
            long requestedTotalBytes,
            long reservedBytes,
            long largestFreeBytes,
            long strandedBytes,
            List<TierHits> tiers) {}

    /// Shows how often one tier of a cache served the requests that reached it.
    ///
    /// @param tier the tier's name, such as `thread_cache`
    /// @param hitPercent the percentage that the tier served, of the requests that reached it: 0 to 100;
    ///     [#UNKNOWN] if no request reached it
    public record TierHits(String tier, int hitPercent) {}

    /// Reads the figures of all devices and allocators.
    public static MemoryFigures of(DeviceMemory memory) {
        List<Allocator> allocators = memory.allocators();
        List<OfDevice> devices = IntStream.range(0, memory.environment().deviceCount())
                .mapToObj(device -> ofDevice(memory, device, allocators))
                .toList();
        return new MemoryFigures(System.nanoTime(), devices);
    }

    private static OfDevice ofDevice(DeviceMemory memory, int device, List<Allocator> allocators) {
        Map<String, Integer> ids = new LinkedHashMap<>();
        List<OfAllocator> figures = new ArrayList<>();
        for (Allocator allocator : allocators) {
            String pool = allocator instanceof MemoryPool its ? poolName(its) : "";
            int id = ids.merge(allocator + " " + pool, 1, Integer::sum);
            figures.add(ofAllocator(allocator, id, pool, device));
        }
        CudaDriver driver = memory.driver();
        return new OfDevice(
                device,
                Known.orElse(() -> driver.devices().name(device), ""),
                Known.orElse(() -> driver.devices().totalBytes(device), UNKNOWN),
                Known.orElse(() -> freeBytes(driver, device), UNKNOWN),
                List.copyOf(figures));
    }

    private static long freeBytes(CudaDriver driver, int device) {
        return driver.devices().isUsed(device) ? driver.memory().info(device).freeBytes() : UNKNOWN;
    }

    private static OfAllocator ofAllocator(Allocator allocator, int id, String pool, int device) {
        AllocatorStatistics counted = allocator.statistics(device);
        Map<String, Long> own = allocator.memoryStatistics(device);
        return new OfAllocator(
                id,
                allocator.toString(),
                pool,
                allocator.memory().currents().isCurrent(device, allocator),
                counted.liveBlocks(),
                counted.allocations(),
                counted.frees(),
                counted.requestedBytes(),
                counted.requestedPeakBytes(),
                counted.requestedTotalBytes(),
                counted.reservedBytes().orElse(UNKNOWN),
                largestFree(allocator, own, device),
                stranded(own),
                tiers(own));
    }

    private static String poolName(MemoryPool pool) {
        return pool.tag().isEmpty() ? Long.toString(pool.id()) : pool.tag();
    }

    private static long largestFree(Allocator allocator, Map<String, Long> own, int device) {
        Long told = own.get(LARGEST_FREE);
        if (told != null) {
            return told;
        }
        OptionalLong largest = allocator.isDrained()
                ? OptionalLong.empty()
                : Known.orElse(
                        () -> allocator.extension(MemoryStatistics.class).stream()
                                .flatMap(statistics -> statistics.heldByStream(device).stream())
                                .mapToLong(StreamMemory::largestFreeBytes)
                                .max(),
                        OptionalLong.empty());
        return largest.orElse(UNKNOWN);
    }

    /// Returns the stranded bytes, or unknown if the allocator does not report its largest free block: only
    /// allocators that report one report the other.
    private static long stranded(Map<String, Long> own) {
        if (!own.containsKey(LARGEST_FREE)) {
            return UNKNOWN;
        }
        return own.entrySet().stream()
                .filter(entry -> entry.getKey().startsWith(STRANDED_PREFIX))
                .mapToLong(Map.Entry::getValue)
                .sum();
    }

    private static List<TierHits> tiers(Map<String, Long> own) {
        return own.entrySet().stream()
                .map(Map.Entry::getKey)
                .filter(key -> key.startsWith(TIER_PREFIX) && key.endsWith(HITS))
                .map(key -> key.substring(TIER_PREFIX.length(), key.length() - HITS.length()))
                .map(tier -> new TierHits(
                        tier,
                        own.getOrDefault(TIER_PREFIX + tier + HIT_PERCENT, UNKNOWN)
                                .intValue()))
                .toList();
    }
}
