package io.cistern.cli.top;

import static io.cistern.cli.common.ResultWriter.object;
import static io.cistern.cli.common.ResultWriter.orNull;

import io.cistern.observability.MemoryFigures.OfAllocator;
import io.cistern.observability.MemoryFigures.OfDevice;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/// An allocator on a device, with its rates since the previous reading.
///
/// @param allocationsPerSecond empty if there was no previous reading
/// @param freesPerSecond empty if there was no previous reading
record Row(
        String memory,
        int device,
        OfAllocator figures,
        OptionalDouble allocationsPerSecond,
        OptionalDouble freesPerSecond) {
    private static final double NANOS_A_SECOND = 1e9;

    /// Returns the rows of a reading; `before` is empty if there was no previous one.
    static List<Row> of(List<Reading> before, List<Reading> now) {
        List<Row> rows = new ArrayList<>();
        for (Reading reading : now) {
            Optional<Reading> earlier = before.stream()
                    .filter(other -> other.memory().equals(reading.memory()))
                    .findFirst();
            for (OfDevice device : reading.figures().devices()) {
                for (OfAllocator figures : device.allocators()) {
                    rows.add(new Row(
                            reading.memory(),
                            device.device(),
                            figures,
                            rate(earlier, reading, device, figures, OfAllocator::allocations),
                            rate(earlier, reading, device, figures, OfAllocator::frees)));
                }
            }
        }
        return rows;
    }

    /// If an allocator is new, or its totals were reset in between, the rate counts from 0.
    private static OptionalDouble rate(
            Optional<Reading> earlier,
            Reading now,
            OfDevice device,
            OfAllocator figures,
            ToLongFunction<OfAllocator> total) {
        if (earlier.isEmpty()
                || earlier.get().figures().nanoTime() == now.figures().nanoTime()) {
            return OptionalDouble.empty();
        }
        long before = earlier.get().figures().devices().stream()
                .filter(other -> other.device() == device.device())
                .flatMap(other -> other.allocators().stream())
                .filter(other -> isSame(figures, other))
                .mapToLong(total)
                .filter(count -> count <= total.applyAsLong(figures))
                .findFirst()
                .orElse(0);
        double seconds = (now.figures().nanoTime() - earlier.get().figures().nanoTime()) / NANOS_A_SECOND;
        return OptionalDouble.of((total.applyAsLong(figures) - before) / seconds);
    }

    Map<String, @Nullable Object> fields() {
        Map<String, Integer> hitPercents = new LinkedHashMap<>();
        figures.tiers().stream()
                .filter(tier -> tier.hitPercent() >= 0)
                .forEach(tier -> hitPercents.put(tier.tier(), tier.hitPercent()));
        return object(
                "device", device,
                "allocator", figures.name(),
                "id", figures.id(),
                "pool", figures.pool(),
                "current", figures.current(),
                "liveBlocks", figures.liveBlocks(),
                "allocations", figures.allocations(),
                "frees", figures.frees(),
                "allocationsPerSecond", orNull(allocationsPerSecond),
                "freesPerSecond", orNull(freesPerSecond),
                "requestedBytes", figures.requestedBytes(),
                "requestedPeakBytes", figures.requestedPeakBytes(),
                "reservedBytes", Reading.known(figures.reservedBytes()),
                "largestFreeBytes", Reading.known(figures.largestFreeBytes()),
                "strandedBytes", Reading.known(figures.strandedBytes()),
                "hitPercents", hitPercents);
    }

    private static boolean isSame(OfAllocator one, OfAllocator other) {
        return one.id() == other.id()
                && one.name().equals(other.name())
                && one.pool().equals(other.pool());
    }
}
