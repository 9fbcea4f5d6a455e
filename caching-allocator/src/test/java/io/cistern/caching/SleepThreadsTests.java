package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.MemoryPool;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Threads that allocate, free and trim while the pool is asleep and wakes; and how long that takes on the simulated
/// GPU's clock.
final class SleepThreadsTests extends PoolFixture {
    private static final int ROUNDS = 40;

    private final AtomicBoolean stop = new AtomicBoolean();
    private final LongAdder allocated = new LongAdder();
    private final LongAdder refused = new LongAdder();

    SleepThreadsTests() {
        super(1024 * MIB);
    }

    @ParameterizedTest
    @EnumSource(SleepMode.class)
    void threadsThatAllocateMeetThePoolAwakeOrAreToldThatItSleeps(SleepMode mode) throws Exception {
        MemoryPool pool = builder().open();
        long steady = pool.allocate(30 * MIB, DEVICE, stream);
        List<Future<?>> done = new ArrayList<>();
        try (ExecutorService platform = Executors.newFixedThreadPool(3);
                ExecutorService virtual = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < 3; i++) {
                long seed = i;
                done.add(platform.submit(() -> allocateAndFree(pool, seed)));
            }
            done.add(virtual.submit(() -> allocateAndFree(pool, 99)));
            done.add(virtual.submit(() -> trimNowAndThen(pool)));
            for (int round = 0; round < ROUNDS; round++) {
                pool.sleep(mode);
                assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
                pool.wake();
                long before = allocated.sum();
                while (allocated.sum() < before + 50 && done.stream().noneMatch(Future::isDone)) {
                    Thread.sleep(1);
                }
            }
            stop.set(true);
            for (Future<?> each : done) {
                each.get(60, TimeUnit.SECONDS);
            }
        }
        assertThat(refused.sum()).isPositive();
        pool.extension(CachingAllocator.class).orElseThrow().checkInvariants();
        assertThat(pool.liveBlockCount()).isEqualTo(1);
        memory.free(steady, stream);
        pool.close();
    }

    private void allocateAndFree(MemoryPool pool, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        long own = gpu.streams().create(DEVICE);
        List<Long> live = new ArrayList<>();
        while (!stop.get()) {
            try {
                live.add(pool.allocate(1 + random.nextInt(random.nextBoolean() ? 1 << 22 : 1 << 12), DEVICE, own));
                allocated.increment();
            } catch (MemoryAsleepException asleep) {
                refused.increment();
                Thread.yield();
            } catch (DeviceOutOfMemoryException full) {
                throw new AssertionError("seed " + seed, full);
            }
            while (live.size() > random.nextInt(20)) {
                memory.free(live.remove(random.nextInt(live.size())), random.nextBoolean() ? own : stream);
            }
        }
        live.forEach(block -> memory.free(block, own));
    }

    private void trimNowAndThen(MemoryPool pool) {
        while (!stop.get()) {
            pool.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
            Thread.yield();
        }
    }
}
