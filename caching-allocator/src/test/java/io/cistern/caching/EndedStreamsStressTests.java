package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Threads that each open a stream, fill and check blocks on it and end it, again and again, beside one whose stream
/// lasts and one that trims: bytes are never somebody else's, and all memory comes back.
class EndedStreamsStressTests {
    private static final long CAPACITY = 1L << 30;
    private static final int THREADS = 3;
    private static final int ROUNDS = 150;
    private static final long SEED = 41;

    private record Block(long address, byte mark) {}

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:reuse=wait", "caching:reuse=never", "caching:source=linear"})
    void contentsAreKeptWhileStreamsComeAndGo(String spec) throws Exception {
        try (SimulatedCaching caching = new SimulatedCaching(CAPACITY, spec);
                ExecutorService executor = Executors.newFixedThreadPool(THREADS + 2)) {
            List<Future<?>> running = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                SplittableRandom random = new SplittableRandom(SEED + thread);
                running.add(executor.submit(() -> useShortStreams(caching, random)));
            }
            running.add(executor.submit(() -> useOneStream(caching)));
            running.add(executor.submit(() -> trimNowAndThen(caching)));
            for (Future<?> each : running) {
                each.get();
            }
            caching.gpu.devices().synchronize(SimulatedCaching.DEVICE);
            caching.trim();
            assertThat(caching.reservedBytes()).as("seed %d", SEED).isZero();
        }
    }

    private static void useShortStreams(SimulatedCaching caching, SplittableRandom random) {
        for (int round = 0; round < ROUNDS; round++) {
            long stream = caching.newStream();
            useBlocks(caching, stream, random);
            caching.memory.streamClosing(SimulatedCaching.DEVICE, stream);
            caching.gpu.streams().destroy(SimulatedCaching.DEVICE, stream);
        }
    }

    private static void useOneStream(SimulatedCaching caching) {
        SplittableRandom random = new SplittableRandom(SEED - 1);
        long stream = caching.newStream();
        for (int round = 0; round < ROUNDS; round++) {
            useBlocks(caching, stream, random);
        }
    }

    private static void trimNowAndThen(SimulatedCaching caching) {
        SplittableRandom random = new SplittableRandom(SEED - 2);
        for (int round = 0; round < ROUNDS / 5; round++) {
            caching.caching().trim(SimulatedCaching.DEVICE, random.nextLong(CAPACITY / 8));
            caching.caching().statistics(SimulatedCaching.DEVICE);
            caching.caching().heldByStream(SimulatedCaching.DEVICE);
            Thread.yield();
        }
    }

    private static void useBlocks(SimulatedCaching caching, long stream, SplittableRandom random) {
        CudaDriver driver = caching.gpu;
        List<Block> live = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            long byteSize = 1 + (long) Math.pow(2, random.nextDouble(24));
            Block block = new Block(caching.allocate(byteSize, stream), (byte) random.nextInt());
            driver.copies().fillBytes(SimulatedCaching.DEVICE, block.address, block.mark, byteSize, stream);
            live.add(block);
            if (random.nextBoolean()) {
                checkAndFree(caching, live.remove(random.nextInt(live.size())), stream, true);
            }
        }
        live.forEach(block -> checkAndFree(caching, block, stream, random.nextBoolean()));
    }

    /// Without a check, work is still in progress when the stream ends.
    private static void checkAndFree(SimulatedCaching caching, Block block, long stream, boolean check) {
        if (check) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment host = arena.allocate(1);
                caching.gpu.copies().toHost(SimulatedCaching.DEVICE, host, block.address, 1, stream);
                caching.gpu.streams().synchronize(SimulatedCaching.DEVICE, stream);
                assertThat(host.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo(block.mark);
            }
        }
        caching.free(block.address, stream);
    }
}
