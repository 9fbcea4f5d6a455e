package io.cistern.caching.hazards;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.simulated.SimulatedGpu;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Allocators order the streams that use the same memory one after the other: seeded programs of streams that never
/// come
/// to an end, so that only waits order them.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
class AllocatorOrderTests {
    private static final long MIB = 1 << 20;
    private static final int STREAMS = 6;
    private static final int STEPS = 400;

    private record Block(long address, long byteSize, long stream) {}

    @ParameterizedTest
    @CsvSource({"caching, 1", "caching:reuse=wait, 2", "caching:fit=tight, 3", "caching:source=linear, 4", "direct, 5"})
    void everyBlockComesAfterTheUsesOfItsMemory(String spec, int seed) {
        SimulatedGpu gpu =
                SimulatedGpu.builder().devices(1).capacityBytes(2048 * MIB).build();
        for (int program = 0; program < 10; program++) {
            SplittableRandom random = new SplittableRandom(1000L * seed + program);
            try (WatchedMemory watched = new WatchedMemory(spec, "list", gpu)) {
                run(watched, random);
                assertThat(watched.hazards.list())
                        .as("seed %d, program %d", seed, program)
                        .isEmpty();
            }
            gpu = SimulatedGpu.builder().devices(1).capacityBytes(2048 * MIB).build();
        }
        gpu.close();
    }

    private static void run(WatchedMemory watched, SplittableRandom random) {
        long[] streams = new long[STREAMS];
        for (int i = 0; i < STREAMS; i++) {
            streams[i] = watched.busyStream();
        }
        List<Block> live = new ArrayList<>();
        for (int step = 0; step < STEPS; step++) {
            if (live.size() < 4 || (live.size() < 12 && random.nextBoolean())) {
                long stream = streams[random.nextInt(STREAMS)];
                long byteSize = (1 + random.nextInt(32)) * MIB;
                Block block = new Block(watched.allocate(byteSize, stream), byteSize, stream);
                watched.fill(block.address, byteSize, stream);
                live.add(block);
            } else {
                Block block = live.remove(random.nextInt(live.size()));
                watched.memory.free(block.address, block.stream);
            }
        }
        live.forEach(block -> watched.memory.free(block.address, block.stream));
    }
}
