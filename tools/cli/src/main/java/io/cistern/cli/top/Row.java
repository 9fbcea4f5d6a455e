package io.cistern.cli.top;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.ToLongFunction;

/// An allocator on a device, with its rates since the previous reading.
///
/// @param memory the bean's name
/// @param device the device's ordinal
/// @param allocationsPerSecond empty if there was no previous reading
/// @param freesPerSecond empty if there was no previous reading
record Row(
        String memory,
        int device,
        Reading.OfAllocator figures,
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
            for (Reading.OfDevice device : reading.devices()) {
                for (Reading.OfAllocator figures : device.allocators()) {
                    rows.add(new Row(
                            reading.memory(),
                            device.device(),
                            figures,
                            rate(earlier, reading, device, figures, Reading.OfAllocator::allocations),
                            rate(earlier, reading, device, figures, Reading.OfAllocator::frees)));
                }
            }
        }
        return rows;
    }

    /// If an allocator is new, or its totals were reset in between, the rate counts from 0.
    private static OptionalDouble rate(
            Optional<Reading> earlier,
            Reading now,
            Reading.OfDevice device,
            Reading.OfAllocator figures,
            ToLongFunction<Reading.OfAllocator> total) {
        if (earlier.isEmpty() || earlier.get().nanoTime() == now.nanoTime()) {
            return OptionalDouble.empty();
        }
        long before = earlier.get().devices().stream()
                .filter(other -> other.device() == device.device())
                .flatMap(other -> other.allocators().stream())
                .filter(figures::isSame)
                .mapToLong(total)
                .filter(count -> count <= total.applyAsLong(figures))
                .findFirst()
                .orElse(0);
        double seconds = (now.nanoTime() - earlier.get().nanoTime()) / NANOS_A_SECOND;
        return OptionalDouble.of((total.applyAsLong(figures) - before) / seconds);
    }
}
