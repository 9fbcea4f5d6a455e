package io.cistern.cli.common;

import static io.cistern.cli.common.ResultWriter.object;

import io.cistern.Allocator;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Sums the statistics of allocators over the driver's pools; read once the device is idle.
///
/// @param thresholdBytes bytes that a pool keeps over a synchronisation; [Long#MAX_VALUE] for all
/// @param reservedBytes bytes that the pools hold
/// @param usedBytes bytes that the pools have handed out
/// @param trims how many times the pools were trimmed
/// @param trimmedBytes bytes that the trims gave back to the driver
public record PoolFigures(long thresholdBytes, long reservedBytes, long usedBytes, long trims, long trimmedBytes) {
    private static final String THRESHOLD = "pool.release_threshold_bytes";

    /// Asks the allocators for each device; returns empty if one of them has no pools of the driver.
    public static Optional<PoolFigures> of(Stream<Allocator> allocators, int... devices) {
        List<Map<String, Long>> figures = allocators
                .flatMap(allocator -> Arrays.stream(devices).mapToObj(allocator::memoryStatistics))
                .toList();
        boolean known = !figures.isEmpty() && figures.stream().allMatch(each -> each.containsKey(THRESHOLD));
        return known ? Optional.of(sum(figures)) : Optional.empty();
    }

    private static PoolFigures sum(List<Map<String, Long>> figures) {
        return new PoolFigures(
                figures.getFirst().getOrDefault(THRESHOLD, 0L),
                sum(figures, "reserved_bytes.all.current"),
                sum(figures, "allocated_bytes.all.current"),
                sum(figures, "pool.trims"),
                sum(figures, "pool.trimmed_bytes"));
    }

    private static long sum(List<Map<String, Long>> figures, String name) {
        return figures.stream().mapToLong(each -> each.getOrDefault(name, 0L)).sum();
    }

    /// Formats a pool's threshold for people; the driver's numbers are unsigned.
    public static String threshold(long bytes) {
        return bytes < 0 || bytes == Long.MAX_VALUE ? "keep all" : ByteSize.format(bytes);
    }

    public Map<String, @Nullable Object> fields() {
        return object(
                "releaseThresholdBytes", thresholdBytes,
                "reservedBytes", reservedBytes,
                "usedBytes", usedBytes,
                "trims", trims,
                "trimmedBytes", trimmedBytes);
    }
}
