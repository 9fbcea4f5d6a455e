package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Threads use their thread caches and each other's blocks while one empties all thread caches again and again,
/// and streams end.
class ThreadCacheStressTests {
    private static final long SEED = 5;
    private static final int THREADS = 3;
    private static final int OPERATIONS = 60_000;

    private record Block(long address, long byteSize, long stream) {}

    private final SimulatedCaching caching = new SimulatedCaching(4L << 30);
    private final long[] streams = {caching.newStream(), caching.newStream(), caching.newStream()};
    /// What is in somebody's hands, by its start.
    private final ConcurrentHashMap<Long, Block> live = new ConcurrentHashMap<>();
    private final List<Block> handedOn = new ArrayList<>();
    private final AtomicInteger working = new AtomicInteger(THREADS);

    @ParameterizedTest(name = "virtual: {0}")
    @ValueSource(booleans = {false, true})
    void noBlockIsInTwoHands(boolean virtual) throws Exception {
        try (ExecutorService executor =
                virtual ? Executors.newVirtualThreadPerTaskExecutor() : Executors.newCachedThreadPool()) {
            List<Callable<Void>> work = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                SplittableRandom random = new SplittableRandom(SEED + thread);
                work.add(() -> allocateAndFree(random));
            }
            work.add(this::emptyThreadCaches);
            for (Future<Void> done : executor.invokeAll(work)) {
                done.get();
            }
        }
        handedOn.forEach(this::free);
        assertThat(live).isEmpty();
        caching.caching().checkInvariants();
        caching.trim();
        assertThat(caching.threadCacheBytes()).isZero();
        assertThat(caching.reservedBytes()).isZero();
        caching.close();
    }

    private Void allocateAndFree(SplittableRandom random) {
        List<Block> mine = new ArrayList<>();
        try {
            for (int i = 0; i < OPERATIONS; i++) {
                if (mine.size() < 50 && random.nextBoolean()) {
                    mine.add(allocate(random));
                } else if (!mine.isEmpty()) {
                    Block block = mine.remove(random.nextInt(mine.size()));
                    free(random.nextInt(4) == 0 ? exchange(block) : block);
                }
            }
            mine.forEach(this::free);
        } finally {
            working.decrementAndGet();
        }
        return null;
    }

    private Block allocate(SplittableRandom random) {
        long stream = streams[random.nextInt(streams.length)];
        long byteSize = random.nextInt(50) == 0 ? 3L << 20 : 512L << random.nextInt(10);
        long address = caching.allocate(byteSize, stream);
        Block block = new Block(address, byteSize, stream);
        assertThat(live.put(address, block)).as("seed %d", SEED).isNull();
        return block;
    }

    private void free(Block block) {
        assertThat(live.remove(block.address)).as("seed %d", SEED).isEqualTo(block);
        caching.free(block.address, block.stream);
    }

    /// Leaves a block for another thread, and takes one that another left.
    private Block exchange(Block block) {
        synchronized (handedOn) {
            handedOn.add(block);
            return handedOn.removeFirst();
        }
    }

    private Void emptyThreadCaches() {
        for (int round = 0; working.get() > 0; round++) {
            DeviceCache cache = caching.caching().cache(SimulatedCaching.DEVICE);
            cache.threadCaches.empty(cache.shards.all());
            if (round % 16 == 0) {
                caching.trim();
                cache.threadCaches.checkInvariants();
            }
            Thread.yield();
        }
        return null;
    }
}
