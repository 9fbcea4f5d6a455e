package io.cistern.caching.hazards;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Allocators order the streams that use the same memory one after the other: seeded programs of streams that are at
/// work until the end, so that only waits order them.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
class AllocatorOrderTests {
    private static final long MIB = 1 << 20;
    private static final int STREAMS = 6;
    private static final int STEPS = 400;
    private static final int PROGRAMS = 10;

    private record Block(long address, long byteSize, long stream) {}

    @ParameterizedTest
    @CsvSource({"caching, 1", "caching:reuse=wait, 2", "caching:fit=tight, 3", "caching:source=linear, 4", "direct, 5"})
    void everyBlockComesAfterTheUsesOfItsMemory(String spec, int seed) {
        run(spec, seed, false);
    }

    /// Streams end too and their handles come again, other streams use blocks, and memory is trimmed.
    @ParameterizedTest
    @CsvSource({"caching, 6", "caching:reuse=never, 7", "caching:splits=false, 8", "caching:source=linear, 9"})
    void everyBlockComesAfterTheUsesOfStreamsThatHaveEnded(String spec, int seed) {
        run(spec, seed, true);
    }

    private static void run(String spec, int seed, boolean streamsEnd) {
        for (int program = 0; program < PROGRAMS; program++) {
            SimulatedGpu gpu =
                    SimulatedGpu.builder().devices(1).capacityBytes(2048 * MIB).build();
            try (WatchedMemory watched = new WatchedMemory(spec, "list", gpu)) {
                new AllocatorProgram(watched, new SplittableRandom(1000L * seed + program), streamsEnd).run();
                assertThat(watched.hazards.list())
                        .as("seed %d, program %d", seed, program)
                        .isEmpty();
            }
        }
    }

    private static final class AllocatorProgram {
        private final WatchedMemory watched;
        private final SplittableRandom random;
        private final boolean streamsEnd;
        private final long[] streams = new long[STREAMS];
        private final List<Block> live = new ArrayList<>();

        AllocatorProgram(WatchedMemory watched, SplittableRandom random, boolean streamsEnd) {
            this.watched = watched;
            this.random = random;
            this.streamsEnd = streamsEnd;
            Arrays.setAll(streams, _ -> watched.busyStream());
        }

        void run() {
            for (int step = 0; step < STEPS; step++) {
                if (streamsEnd && random.nextInt(10) == 0) {
                    endAStreamOrTrim();
                } else if (live.size() < 4 || (live.size() < 12 && random.nextBoolean())) {
                    allocate(stream());
                } else {
                    free(live.remove(random.nextInt(live.size())));
                }
            }
            live.forEach(block -> watched.memory.free(block.address, block.stream));
        }

        private long stream() {
            return streams[random.nextInt(STREAMS)];
        }

        private void allocate(long stream) {
            long byteSize = random.nextInt(4) == 0 ? 1 + random.nextInt(1 << 16) : (1 + random.nextInt(32)) * MIB;
            Block block = new Block(watched.allocate(byteSize, stream), byteSize, stream);
            watched.fill(block.address, byteSize, stream);
            live.add(block);
        }

        /// Another stream may have used the block last.
        private void free(Block block) {
            int dice = streamsEnd ? random.nextInt(4) : 0;
            if (dice < 2) {
                watched.memory.free(block.address, block.stream);
                return;
            }
            long user = stream();
            watched.order(block.stream, user);
            watched.fill(block.address, block.byteSize, user);
            if (dice == 2) {
                watched.memory.recordUse(block.address, user);
                watched.memory.free(block.address, block.stream);
            } else {
                watched.freeAfter(block.address, user);
            }
        }

        private void endAStreamOrTrim() {
            int index = random.nextInt(STREAMS);
            long ending = streams[index];
            if (live.stream().anyMatch(block -> block.stream == ending)) {
                watched.memory.trim(0, random.nextInt(256) * MIB, TrimMode.WITHOUT_WAITING);
                return;
            }
            watched.memory.streamClosing(0, ending);
            watched.memory.driver().streams().destroy(0, ending);
            streams[index] = watched.busyStream();
        }
    }
}
