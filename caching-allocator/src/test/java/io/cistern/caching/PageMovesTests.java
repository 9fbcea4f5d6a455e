package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.options.PageReuse;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Random blocks on several streams of a device that is nearly full, each filled and, before it is freed, read on
/// its stream: bytes are never somebody else's, while pages move, go and come, and streams end.
class PageMovesTests {
    private static final long CAPACITY = 192L << 20;
    private static final int OPERATIONS = 1200;
    private static final int MANY_OPERATIONS = 30_000;

    private record Block(long address, long byteSize, int stream, byte mark) {}

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(CAPACITY).build();
    private final GpuContext context = new GpuContext(gpu);
    private final long[] streams = new long[4];
    private final List<Block> live = new ArrayList<>();

    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {1, 2, 3, 4})
    void contentsAreKeptWhilePagesMove(long seed) {
        run(seed, OPERATIONS, 1);
    }

    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {5, 6})
    void contentsAreKeptWhileAddressesThatPagesLeftGo(long seed) {
        Map<String, Long> figures = run(seed, MANY_OPERATIONS, 100);
        assertThat(figures.get("pages.unaliased")).isGreaterThan(200);
    }

    private Map<String, Long> run(long seed, int operations, int checkEach) {
        SplittableRandom random = new SplittableRandom(seed);
        CachingAllocator caching = context.open(seed % 2 == 0 ? PageReuse.WAIT : PageReuse.ADAPTIVE, false);
        for (int i = 0; i < streams.length; i++) {
            streams[i] = gpu.streams().create(0);
        }
        try {
            for (int i = 0; i < operations; i++) {
                operate(caching, random);
                if (i % checkEach == 0) {
                    caching.checkInvariants();
                }
            }
            Map<String, Long> figures = caching.statistics(0);
            while (!live.isEmpty()) {
                free(caching, random);
            }
            caching.close();
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY);
            assertThat(gpu.misuses()).isEmpty();
            assertThat(context.movedBytes).isPositive();
            gpu.close();
            return figures;
        } catch (RuntimeException | AssertionError failure) {
            throw new AssertionError("seed " + seed, failure);
        }
    }

    private void operate(CachingAllocator caching, SplittableRandom random) {
        int dice = random.nextInt(100);
        if (dice < 50) {
            allocate(caching, random);
        } else if (dice < 97 && !live.isEmpty()) {
            free(caching, random);
        } else if (dice < 98) {
            caching.trim(0, random.nextLong(CAPACITY));
        } else if (dice < 99) {
            gpu.devices().synchronize(0);
        } else {
            replace(caching, random.nextInt(streams.length));
        }
    }

    private void allocate(CachingAllocator caching, SplittableRandom random) {
        int stream = random.nextInt(streams.length);
        long byteSize = 512 + (long) Math.pow(2, random.nextDouble(25.5));
        try {
            long address = caching.allocate(byteSize, 0, streams[stream]);
            byte mark = (byte) random.nextInt(1, 127);
            gpu.copies().fillBytes(0, address, mark, byteSize, streams[stream]);
            live.add(new Block(address, byteSize, stream, mark));
        } catch (DeviceOutOfMemoryException full) {
            assertThat(live).as("memory is in use").isNotEmpty();
        }
    }

    private void free(CachingAllocator caching, SplittableRandom random) {
        Block block = live.remove(random.nextInt(live.size()));
        long stream = streams[block.stream];
        if (random.nextInt(4) == 0) {
            assertThat(context.read(block.address + random.nextLong(block.byteSize), stream))
                    .isEqualTo(block.mark);
        }
        caching.free(block.address, block.byteSize, 0, stream);
    }

    /// The stream ends, and another takes its place; its blocks live on, ordered after it.
    private void replace(CachingAllocator caching, int stream) {
        caching.streamClosing(0, streams[stream]);
        gpu.streams().synchronize(0, streams[stream]);
        gpu.streams().destroy(0, streams[stream]);
        streams[stream] = gpu.streams().create(0);
    }
}
