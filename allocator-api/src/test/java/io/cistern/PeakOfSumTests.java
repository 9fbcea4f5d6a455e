package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Peaks of several allocators together, and of several threads.
class PeakOfSumTests {
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(8L << 30).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new ArrayAllocatorProvider("array")), List.of(new DriverSource.Linear())))
            .open();

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    private long peak() {
        return memory.statistics(0).requestedPeakBytes();
    }

    @Test
    void whatWasNotAliveAtOnceIsNotAdded() {
        Allocator first = memory.open("array");
        Allocator second = memory.open("array");
        for (Allocator each : List.of(first, second)) {
            memory.free(each.allocate(10, 0, 0), 0);
        }
        assertThat(first.statistics(0).requestedPeakBytes()).isEqualTo(10);
        assertThat(peak()).isEqualTo(10);
        long one = first.allocate(100 * MIB, 0, 0);
        long two = second.allocate(50 * MIB, 0, 0);
        memory.free(one, 0);
        memory.free(second.allocate(80 * MIB, 0, 0), 0);
        memory.free(two, 0);
        assertThat(peak()).isBetween(150 * MIB, 153 * MIB);
    }

    @Test
    void thePeakOfTheFirstAllocatorStaysKnownBesideASecond() {
        Allocator first = memory.open("array");
        memory.free(first.allocate(100 * MIB, 0, 0), 0);
        Allocator second = memory.open("array");
        memory.free(second.allocate(MIB, 0, 0), 0);
        assertThat(peak()).isBetween(100 * MIB, 102 * MIB);
    }

    @Test
    void allocatorsClosedSinceCount() {
        try (Allocator closed = memory.open("array")) {
            memory.free(closed.allocate(100 * MIB, 0, 0), 0);
        }
        Allocator open = memory.open("array");
        memory.free(open.allocate(MIB, 0, 0), 0);
        assertThat(peak()).isBetween(100 * MIB, 102 * MIB);
        open.resetPeaks(0);
        memory.free(open.allocate(2 * MIB, 0, 0), 0);
        assertThat(peak()).isEqualTo(2 * MIB);
    }

    /// Sixteen threads have at most one block each, in a hundred rounds.
    @Test
    void manyThreadsWithSmallBlocksDoNotRaiseAPeak() throws Exception {
        int count = 16;
        Allocator allocator = memory.open("array");
        CyclicBarrier round = new CyclicBarrier(count);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            threads.add(Thread.ofPlatform().start(() -> {
                try {
                    for (int times = 0; times < 100; times++) {
                        long block = allocator.allocate(1024, 0, 0);
                        if (times % 10 == 0) {
                            round.await();
                        }
                        memory.free(block, 0);
                    }
                } catch (Exception broken) {
                    throw new AssertionError(broken);
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long most = count * 1024L;
        assertThat(allocator.statistics(0).requestedPeakBytes()).isBetween(most, most + count * 4096L);
    }
}
