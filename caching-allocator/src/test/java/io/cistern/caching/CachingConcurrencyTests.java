package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/// Threads share streams, free on each other's streams, run out of memory and trim, all at once.
class CachingConcurrencyTests {
    private static final int THREADS = 4;
    private static final int OPERATIONS = 5000;
    private static final long SEED = 20;

    private final TestPages pages = new TestPages(64L << 20);
    private final TestContext context = new TestContext(pages);
    private final CachingAllocator caching = context.open();
    /// End by start, of what is live in any thread.
    private final TreeMap<Long, Long> live = new TreeMap<>();

    @Test
    void noTwoThreadsEverHoldTheSameBytes() throws Exception {
        try (var executor = Executors.newFixedThreadPool(THREADS)) {
            List<Callable<Void>> work = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                SplittableRandom random = new SplittableRandom(SEED + thread);
                work.add(() -> allocateAndFree(random));
            }
            for (Future<Void> done : executor.invokeAll(work)) {
                done.get();
            }
        }
        caching.checkInvariants();
        caching.close();
        assertThat(pages.live).isEmpty();
        assertThat(context.order.openFences()).isZero();
    }

    /// Each trim makes others grow, while still others free: a search may miss what is there before the growth.
    @Test
    void manyVirtualThreadsGrowWhileOthersFree() throws Exception {
        pages.capacity = 1L << 34;
        try (var executor = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<?>> done = new ArrayList<>();
            for (int task = 0; task < 200; task++) {
                done.add(executor.submit(this::allocateFreeAndTrim));
            }
            for (Future<?> each : done) {
                each.get();
            }
        }
        caching.checkInvariants();
        caching.close();
        assertThat(pages.live).isEmpty();
    }

    private void allocateFreeAndTrim() {
        for (int i = 0; i < 200; i++) {
            long address = caching.allocate((2L + i % 3) << 20, 0, 0x1000);
            Thread.yield();
            caching.free(address, (2L + i % 3) << 20, 0, 0x1000);
            if (i % 4 == 0) {
                caching.trim(0, 0);
            }
        }
    }

    private Void allocateAndFree(SplittableRandom random) {
        List<Long> mine = new ArrayList<>();
        for (int i = 0; i < OPERATIONS; i++) {
            if (random.nextInt(500) == 0) {
                caching.trim(0, random.nextLong(32L << 20));
            } else if (random.nextInt(2) == 0) {
                allocate(random, mine);
            } else if (!mine.isEmpty()) {
                free(mine.remove(random.nextInt(mine.size())), random);
            }
        }
        mine.forEach(address -> free(address, random));
        return null;
    }

    private void allocate(SplittableRandom random, List<Long> mine) {
        long byteSize = 1 + (long) Math.pow(2, random.nextDouble(23));
        try {
            long address = caching.allocate(byteSize, 0, stream(random));
            synchronized (live) {
                var below = live.floorEntry(address + byteSize - 1);
                assertThat(below == null || below.getValue() <= address)
                        .as("seed %d: no overlap", SEED)
                        .isTrue();
                live.put(address, address + byteSize);
            }
            mine.add(address);
        } catch (DeviceOutOfMemoryException full) {
            if (!mine.isEmpty()) {
                free(mine.removeLast(), random);
            }
        }
    }

    private void free(long address, SplittableRandom random) {
        long byteSize;
        synchronized (live) {
            byteSize = live.remove(address) - address;
        }
        caching.free(address, byteSize, 0, stream(random));
    }

    private static long stream(SplittableRandom random) {
        return 0x1000L * (1 + random.nextInt(2));
    }
}
