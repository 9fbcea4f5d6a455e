package io.cistern.cli.top;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.management.openmbean.CompositeData;

/// The figures of one device memory, read from the watched program's bean. An unknown number is negative.
///
/// @param memory the bean's name
/// @param nanoTime the time of the reading, by the program's clock
/// @param devices the devices by ordinal
record Reading(String memory, long nanoTime, List<OfDevice> devices) {
    /// The figures of a device.
    record OfDevice(int device, String name, long totalBytes, long freeBytes, List<OfAllocator> allocators) {}

    /// The figures of an allocator or pool on a device.
    ///
    /// @param id distinguishes allocators of the same name
    /// @param current whether new blocks come from it unless a scope says otherwise
    /// @param hitPercents hit rates by tier of the cache, in percent
    record OfAllocator(
            int id,
            String name,
            String pool,
            boolean current,
            long liveBlocks,
            long allocations,
            long frees,
            long requestedBytes,
            long requestedPeakBytes,
            long reservedBytes,
            long largestFreeBytes,
            long strandedBytes,
            Map<String, Integer> hitPercents) {
        /// Returns whether this is the same allocator at another time.
        boolean isSame(OfAllocator other) {
            return id == other.id && name.equals(other.name) && pool.equals(other.pool);
        }
    }

    /// Decodes the bean's attribute.
    static Reading of(String memory, CompositeData figures) {
        return new Reading(
                memory,
                number(figures, "nanoTime"),
                parts(figures, "devices").map(Reading::ofDevice).toList());
    }

    private static OfDevice ofDevice(CompositeData device) {
        return new OfDevice(
                (int) number(device, "device"),
                text(device, "name"),
                number(device, "totalBytes"),
                number(device, "freeBytes"),
                parts(device, "allocators").map(Reading::ofAllocator).toList());
    }

    private static OfAllocator ofAllocator(CompositeData allocator) {
        Map<String, Integer> hitPercents = new LinkedHashMap<>();
        parts(allocator, "tiers")
                .forEach(tier -> hitPercents.put(text(tier, "tier"), (int) number(tier, "hitPercent")));
        return new OfAllocator(
                (int) number(allocator, "id"),
                text(allocator, "name"),
                text(allocator, "pool"),
                (Boolean) allocator.get("current"),
                number(allocator, "liveBlocks"),
                number(allocator, "allocations"),
                number(allocator, "frees"),
                number(allocator, "requestedBytes"),
                number(allocator, "requestedPeakBytes"),
                number(allocator, "reservedBytes"),
                number(allocator, "largestFreeBytes"),
                number(allocator, "strandedBytes"),
                hitPercents);
    }

    private static long number(CompositeData data, String name) {
        return ((Number) data.get(name)).longValue();
    }

    private static String text(CompositeData data, String name) {
        return String.valueOf(data.get(name));
    }

    private static java.util.stream.Stream<CompositeData> parts(CompositeData data, String name) {
        return Arrays.stream((CompositeData[]) data.get(name));
    }
}
