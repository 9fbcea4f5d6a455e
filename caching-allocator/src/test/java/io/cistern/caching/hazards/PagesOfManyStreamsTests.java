package io.cistern.caching.hazards;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Streams that never rest take each other's pages, in random programs on a small device. The check of streams finds
/// each page that a stream gets before it waits for all work on it.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
class PagesOfManyStreamsTests {
    private static final long PAGE = 2 << 20;
    private static final int STREAMS = 5;
    private static final int OPERATIONS = 400;
    private static final int PROGRAMS = Integer.getInteger("cistern.testkit.programs", 40);

    private record Block(long address, long stream) {}

    @ParameterizedTest
    @ValueSource(strings = {"caching:page_size=2MiB", "caching:page_size=2MiB,reuse=wait"})
    void aStreamWaitsForAllThatUsedItsPages(String spec) {
        int found = 0;
        for (int seed = 0; seed < PROGRAMS; seed++) {
            found += run(spec, seed);
        }
        assertThat(found).isZero();
    }

    private static int run(String spec, int seed) {
        Random random = new Random(seed);
        SimulatedGpu gpu =
                SimulatedGpu.builder().devices(1).capacityBytes(24 * PAGE).build();
        try (WatchedMemory watched = new WatchedMemory(spec, "list", gpu)) {
            long[] streams = new long[STREAMS];
            for (int i = 0; i < STREAMS; i++) {
                streams[i] = watched.busyStream();
            }
            List<Block> blocks = new ArrayList<>();
            for (int i = 0; i < OPERATIONS; i++) {
                long stream = streams[random.nextInt(STREAMS)];
                int choice = random.nextInt(20);
                if (choice == 0) {
                    watched.memory.trim(0, 0, TrimMode.WITHOUT_WAITING);
                } else if (choice < 10 && blocks.size() < 12) {
                    try {
                        long byteSize = PAGE * (1 + random.nextInt(3));
                        long address = watched.allocate(byteSize, stream);
                        watched.fill(address, byteSize, stream);
                        blocks.add(new Block(address, stream));
                    } catch (DeviceOutOfMemoryException full) {
                        // others are freed
                    }
                } else if (!blocks.isEmpty()) {
                    Block block = blocks.remove(random.nextInt(blocks.size()));
                    watched.memory.free(block.address, block.stream);
                }
            }
            for (Block block : blocks) {
                watched.memory.free(block.address, block.stream);
            }
            return watched.kinds().size();
        }
    }
}
