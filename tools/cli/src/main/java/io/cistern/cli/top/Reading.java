package io.cistern.cli.top;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.management.openmbean.CompositeData;

/// The figures of one device memory of the watched program, as its bean told them. A number that is not known
/// is below 0.
///
/// @param memory the bean's name
/// @param nanoTime when, by the program's clock
/// @param devices by ordinal
record Reading(String memory, long nanoTime, List<OfDevice> devices) {
    /// A device.
    record OfDevice(int device, String name, long totalBytes, long freeBytes, List<OfAllocator> allocators) {}

    /// An allocator on a device, or a pool.
    ///
    /// @param id tells those of one name apart
    /// @param current whether new blocks come from it where no scope says otherwise
    /// @param hitPercents by tier of the cache
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
        /// Whether this is the same allocator at another time.
        boolean isSame(OfAllocator other) {
            return id == other.id && name.equals(other.name) && pool.equals(other.pool);
        }
    }

    /// Takes the bean's attribute apart.
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
