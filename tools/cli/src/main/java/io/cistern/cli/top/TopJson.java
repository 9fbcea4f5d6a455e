package io.cistern.cli.top;

import io.cistern.observability.MemoryFigures;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/// Turns readings into JSON for programs; unknown values are null.
final class TopJson {
    private TopJson() {}

    /// Returns the fields of one device memory's object.
    static Map<String, @Nullable Object> fields(
            String pid, Reading reading, List<Row> rows, List<WaitingThread> waiting) {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("pid", Long.parseLong(pid));
        fields.put("memory", reading.memory());
        fields.put("nanoTime", reading.figures().nanoTime());
        fields.put(
                "devices",
                reading.figures().devices().stream().map(TopJson::fields).toList());
        fields.put(
                "allocators",
                rows.stream()
                        .filter(row -> row.memory().equals(reading.memory()))
                        .map(TopJson::fields)
                        .toList());
        fields.put("waiting", waiting.stream().map(TopJson::fields).toList());
        return fields;
    }

    private static Map<String, @Nullable Object> fields(MemoryFigures.OfDevice device) {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("device", device.device());
        fields.put("name", device.name());
        fields.put("totalBytes", known(device.totalBytes()));
        fields.put("freeBytes", known(device.freeBytes()));
        return fields;
    }

    private static Map<String, @Nullable Object> fields(Row row) {
        MemoryFigures.OfAllocator figures = row.figures();
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("device", row.device());
        fields.put("allocator", figures.name());
        fields.put("id", figures.id());
        fields.put("pool", figures.pool());
        fields.put("current", figures.current());
        fields.put("liveBlocks", figures.liveBlocks());
        fields.put("allocations", figures.allocations());
        fields.put("frees", figures.frees());
        fields.put("allocationsPerSecond", orNull(row.allocationsPerSecond()));
        fields.put("freesPerSecond", orNull(row.freesPerSecond()));
        fields.put("requestedBytes", figures.requestedBytes());
        fields.put("requestedPeakBytes", figures.requestedPeakBytes());
        fields.put("reservedBytes", known(figures.reservedBytes()));
        fields.put("largestFreeBytes", known(figures.largestFreeBytes()));
        fields.put("strandedBytes", known(figures.strandedBytes()));
        Map<String, Integer> hitPercents = new LinkedHashMap<>();
        figures.tiers().stream()
                .filter(tier -> tier.hitPercent() >= 0)
                .forEach(tier -> hitPercents.put(tier.tier(), tier.hitPercent()));
        fields.put("hitPercents", hitPercents);
        return fields;
    }

    private static Map<String, @Nullable Object> fields(WaitingThread thread) {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("thread", thread.name());
        fields.put("state", thread.state());
        fields.put("in", thread.in());
        return fields;
    }

    private static @Nullable Long known(long number) {
        return number < 0 ? null : number;
    }

    private static @Nullable Double orNull(OptionalDouble value) {
        return value.isPresent() ? value.getAsDouble() : null;
    }
}
