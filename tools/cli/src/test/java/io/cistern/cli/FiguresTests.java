package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cli.common.Plugins;
import io.cistern.simulated.SimulatedGpu;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Figures of an allocator and of a pool that served nobody neither fail nor take memory, on a full device and on an
/// empty one.
final class FiguresTests {
    private static final long CAPACITY_BYTES = 64L << 20;

    static List<String> specs() {
        return EverySpec.list();
    }

    @ParameterizedTest
    @MethodSource("specs")
    void figuresOpenNothing(String spec) {
        for (long taken : new long[] {0, CAPACITY_BYTES}) {
            try (SimulatedGpu gpu =
                            SimulatedGpu.builder().capacityBytes(CAPACITY_BYTES).build();
                    DeviceMemory memory =
                            DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open();
                    Allocator allocator = memory.open(spec);
                    MemoryPool pool = MemoryPool.builder(memory).spec(spec).open()) {
                if (taken > 0) {
                    gpu.memory().allocate(0, taken);
                }
                askAll(memory, allocator, pool);
                assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY_BYTES - taken);
            }
        }
    }

    private static void askAll(DeviceMemory memory, Allocator allocator, MemoryPool pool) {
        allocator.statistics(0);
        assertThat(allocator.memoryStatistics(0)).isNotEmpty();
        allocator.memorySummary(0);
        allocator.reservedBytes(0);
        allocator.resetPeaks(0);
        allocator.resetTotals(0);
        pool.memoryStatistics(0);
        pool.memorySummary(0);
        pool.reservedBytes(0);
        assertThat(allocator.liveBlocks()).isEmpty();
        assertThat(pool.liveBlocks()).isEmpty();
        assertThat(memory.liveBlocks()).isEmpty();
    }
}
