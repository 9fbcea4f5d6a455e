package io.cistern.cli.top;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.observability.MemoryFigures;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Rates are made of two readings.
final class RowTests {
    @Test
    void aRateIsTheDifferenceOverTheTime() {
        Row row = Row.of(List.of(reading("1", 1_000_000_000, 100)), List.of(reading("1", 3_000_000_000L, 150)))
                .getFirst();
        assertThat(row.allocationsPerSecond()).hasValue(25);
        assertThat(row.freesPerSecond()).hasValue(24);
    }

    @Test
    void withoutAReadingBeforeThereIsNoRate() {
        assertThat(Row.of(List.of(), List.of(reading("1", 5, 100))).getFirst().allocationsPerSecond())
                .isEmpty();
        assertThat(Row.of(List.of(reading("2", 1, 1)), List.of(reading("1", 5, 100)))
                        .getFirst()
                        .allocationsPerSecond())
                .isEmpty();
    }

    @Test
    void totalsThatWereSetBackBeginAgain() {
        Row row = Row.of(List.of(reading("1", 0, 100)), List.of(reading("1", 1_000_000_000, 30)))
                .getFirst();
        assertThat(row.allocationsPerSecond()).hasValue(30);
    }

    private static Reading reading(String memory, long nanoTime, long allocations) {
        MemoryFigures.OfAllocator figures = new MemoryFigures.OfAllocator(
                1,
                "caching",
                "",
                true,
                1,
                allocations,
                allocations - nanoTime / 1_000_000_000,
                0,
                0,
                0,
                0,
                0,
                0,
                List.of());
        return new Reading(
                memory,
                new MemoryFigures(nanoTime, List.of(new MemoryFigures.OfDevice(0, "GPU", 8, 8, List.of(figures)))));
    }

    @Test
    void columnsAreNamedByWordOrHeading() {
        assertThat(Column.named("largest")).isEqualTo(Column.LARGEST);
        assertThat(Column.named("Max free")).isEqualTo(Column.LARGEST);
        assertThat(Column.named("hits %")).isEqualTo(Column.HITS);
        assertThat(Column.named("allocs/s")).isEqualTo(Column.ALLOCATIONS);
    }
}
