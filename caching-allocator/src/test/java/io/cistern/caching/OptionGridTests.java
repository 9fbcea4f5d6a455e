package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Cycles of the same requests leave reserved memory where the first cycles put it, whatever options are
/// combined: in PyTorch a split limit together with expandable segments made 14,060 MiB of 220 in 100 cycles.
class OptionGridTests extends PoolFixture {
    private static final int CYCLES = 100;
    /// In which every order of the sizes came twice.
    private static final int FIRST_CYCLES = 20;
    /// A tenth: which idle pages go to a threshold depends on how the cycles before left them.
    private static final int SLACK = 10;
    /// Of the bytes requested.
    private static final int MAX_RESERVED = 3;
    /// In MiB: some above, some below each limit of the grid, in an order that splits and merges.
    private static final int[] SIZES = {70, 1, 24, 33, 5, 44, 12, 21, 3, 7};

    OptionGridTests() {
        super(16L << 30);
    }

    static Stream<String> combinations() {
        List<String> grid = List.of("caching:");
        grid = times(grid, "expandable_segments=true", "expandable_segments=false");
        grid = times(grid, "", ",alignment=4096", ",alignment=2MiB");
        grid = times(grid, "", ",thread_caches=false");
        grid = times(grid, "", ",initial_bytes=64MiB");
        grid = times(grid, "", ",per_process_memory_fraction=0.05");
        return grid.stream();
    }

    private static List<String> times(List<String> grid, String... choices) {
        return grid.stream()
                .flatMap(head -> Stream.of(choices).map(choice -> head + choice))
                .toList();
    }

    @ParameterizedTest
    @MethodSource("combinations")
    void reservedMemoryStaysBounded(String spec) {
        try (Allocator caching = memory.open(spec)) {
            long peak = reservedPeak(caching, 0, FIRST_CYCLES);
            long requested = caching.statistics(DEVICE).requestedPeakBytes();
            assertThat(reservedPeak(caching, FIRST_CYCLES, CYCLES))
                    .as("most reserved until cycle %d", CYCLES)
                    .isLessThanOrEqualTo(peak + peak / SLACK);
            assertThat(peak).as("reserved beside requested").isLessThanOrEqualTo(MAX_RESERVED * requested);
        }
    }

    private long reservedPeak(Allocator caching, int from, int to) {
        long peak = 0;
        for (int cycle = from; cycle < to; cycle++) {
            cycle(caching, cycle);
            peak = Math.max(peak, caching.reservedBytes(DEVICE).orElseThrow());
        }
        return peak;
    }

    private void cycle(Allocator caching, int cycle) {
        List<Long> live = new ArrayList<>();
        for (int i = 0; i < SIZES.length; i++) {
            live.add(caching.allocate(SIZES[(i + cycle) % SIZES.length] * MIB - 300, DEVICE, stream));
            if (i % 3 == 2) {
                free(live.remove(i / 3));
            }
        }
        live.forEach(address -> free(address));
    }
}
