package io.cistern.observability;

import io.cistern.Allocator;
import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.spi.MemoryStatistics;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/// The figures of a whole [DeviceMemory] at one time: each device, and each allocator on it. For monitors,
/// which ask for all of it in one call; its parts are plain numbers and texts, so that JMX carries them as
/// they are.
///
/// Weakly consistent while other threads allocate. A figure that an allocator can't tell is [#UNKNOWN].
///
/// @param nanoTime [System#nanoTime] of the process when they were read, to make rates of totals
/// @param devices by ordinal
public record MemoryFigures(long nanoTime, List<OfDevice> devices) {
    /// Stands for a figure that is not known.
    public static final long UNKNOWN = -1;

    private static final String TIER_PREFIX = "tier.";
    private static final String HIT_PERCENT = ".hit_percent";
    private static final String STRANDED_PREFIX = "stranded_bytes.";
    private static final String LARGEST_FREE = "largest_free_block";

    /// Copies the list.
    public MemoryFigures {
        devices = List.copyOf(devices);
    }

    /// The figures of a device.
    ///
    /// @param device its ordinal
    /// @param name the driver's name for it
    /// @param totalBytes its memory
    /// @param freeBytes of that what no process uses, as the driver says; unknown while this process does not
    ///     use the device, since asking would cost memory there
    /// @param allocators those that are open or still have live blocks, in the order of opening; pools too
    public record OfDevice(int device, String name, long totalBytes, long freeBytes, List<OfAllocator> allocators) {
        /// Copies the list.
        public OfDevice {
            allocators = List.copyOf(allocators);
        }
    }

    /// The figures of an allocator on a device: see [AllocatorStatistics] and [MemoryStatistics].
    ///
    /// @param id the place among those of its name and pool, from 1: tells them apart as long as the same
    ///     ones are open
    /// @param name its spec
    /// @param pool the pool's tag, or its number if it has none; empty if it belongs to no pool
    /// @param current whether it is current on the device
    /// @param liveBlocks blocks alive
    /// @param allocations allocations so far
    /// @param frees frees so far
    /// @param requestedBytes bytes asked for in the blocks alive
    /// @param requestedPeakBytes the highest of that
    /// @param requestedTotalBytes bytes asked for so far
    /// @param reservedBytes held from the driver
    /// @param largestFreeBytes the largest block that is free
    /// @param strandedBytes idle or waiting bytes that only one stream can use now
    /// @param tiers how often each tier of the cache served at once; empty if there are none
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
            List<TierHits> tiers) {
        /// Copies the list.
        public OfAllocator {
            tiers = List.copyOf(tiers);
        }
    }

    /// How often a tier of a cache served a request at once.
    ///
    /// @param tier its name, such as `thread_cache`
    /// @param hitPercent of the requests that reached it, 0 to 100
    public record TierHits(String tier, int hitPercent) {}

    /// Reads the figures.
    public static MemoryFigures of(DeviceMemory memory) {
        List<Allocator> allocators = memory.allocators();
        List<OfDevice> devices = new ArrayList<>();
        for (int device = 0; device < memory.environment().deviceCount(); device++) {
            devices.add(ofDevice(memory, device, allocators));
        }
        return new MemoryFigures(System.nanoTime(), devices);
    }

    private static OfDevice ofDevice(DeviceMemory memory, int device, List<Allocator> allocators) {
        Map<String, Integer> ids = new LinkedHashMap<>();
        List<OfAllocator> figures = new ArrayList<>();
        for (Allocator allocator : allocators) {
            String pool = allocator.pool().map(MemoryFigures::poolName).orElse("");
            int id = ids.merge(allocator + " " + pool, 1, Integer::sum);
            figures.add(ofAllocator(allocator, id, pool, device));
        }
        var driver = memory.driver();
        long free =
                driver.devices().isUsed(device) ? driver.memory().info(device).freeBytes() : UNKNOWN;
        return new OfDevice(
                device, driver.devices().name(device), driver.devices().totalBytes(device), free, figures);
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
                : allocator.extension(MemoryStatistics.class).stream()
                        .flatMap(statistics -> statistics.heldByStream(device).stream())
                        .mapToLong(StreamMemory::largestFreeBytes)
                        .max();
        return largest.orElse(UNKNOWN);
    }

    /// Bytes are stranded if the allocator is one that can say so, which names its largest free block too.
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
                .filter(entry ->
                        entry.getKey().startsWith(TIER_PREFIX) && entry.getKey().endsWith(HIT_PERCENT))
                .map(entry -> new TierHits(
                        entry.getKey()
                                .substring(TIER_PREFIX.length(), entry.getKey().length() - HIT_PERCENT.length()),
                        entry.getValue().intValue()))
                .toList();
    }
}
