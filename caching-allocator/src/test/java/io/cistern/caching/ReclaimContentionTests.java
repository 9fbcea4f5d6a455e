package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.spi.DeviceAllocator;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Threads that run out of memory at the same time, each with an allocator and a stream of its own, so that each
/// has to take from the others what those keep idle.
@Timeout(120)
final class ReclaimContentionTests extends ReclaimFixture {
    private static final int THREADS = 6;
    private static final int ROUNDS = 40;

    /// So long that others come to want it.
    private static final long HELD_NANOS = 200_000;

    /// For each round: a block is some pages, each of which goes and comes by five calls, now and then in vain.
    private static final long MAX_CALLS = 100;

    /// What a thread holds is at most a third of the device, so twice as much is wanted as there is.
    private static final long BLOCK = 80 * MIB;

    private Allocator[] allocators(DeviceMemory memory, boolean shared) {
        Allocator[] all = new Allocator[THREADS];
        for (int i = 0; i < THREADS; i++) {
            all[i] = shared && i > 0 ? all[0] : memory.open("caching");
        }
        return all;
    }

    private void threadsTakeTurns(boolean shared) throws Exception {
        DeviceMemory memory = open(DeviceMemory.builder(gpu).waitForFrees(Duration.ofSeconds(20)));
        Allocator[] allocators = allocators(memory, shared);
        long seed = Long.getLong("cistern.testkit.seed", 20_260_101L);
        List<FutureTask<Long>> running = new ArrayList<>();
        long before = gpu.calls().of(DriverCall.Kind.MEMORY);
        for (Allocator allocator : allocators) {
            Random random = new Random(seed + running.size());
            FutureTask<Long> task = new FutureTask<>(() -> work(memory, allocator, random));
            running.add(task);
            Thread.ofPlatform().start(task);
        }
        for (FutureTask<Long> task : running) {
            assertThat(task.get(60, TimeUnit.SECONDS)).as("seed %d", seed).isEqualTo(ROUNDS);
        }
        long calls = gpu.calls().of(DriverCall.Kind.MEMORY) - before;
        assertThat(calls).as("driver calls, seed %d", seed).isLessThan(MAX_CALLS * THREADS * ROUNDS);
    }

    private long work(DeviceMemory memory, Allocator allocator, Random random) {
        long own = gpu.streams().create(DEVICE);
        long served = 0;
        for (int round = 0; round < ROUNDS; round++) {
            long byteSize = BLOCK / 2 + random.nextLong(BLOCK / 2);
            long block = allocator.allocate(byteSize, DEVICE, own);
            gpu.copies().fillBytes(DEVICE, block, (byte) round, byteSize, own);
            LockSupport.parkNanos(HELD_NANOS);
            memory.free(block, own);
            served++;
        }
        memory.streamClosing(DEVICE, own);
        gpu.streams().destroy(DEVICE, own);
        return served;
    }

    @Test
    void allocatorsThatTakeFromOneAnotherAllGetOn() throws Exception {
        threadsTakeTurns(false);
    }

    @Test
    void streamsThatTakeFromOneAnotherAllGetOn() throws Exception {
        threadsTakeTurns(true);
    }

    /// Two requests, and idle memory that does for both: who comes second finds what the first one's trim left.
    @Test
    void whoHadToWaitForAnothersTrimAsksAgainFirst() throws Exception {
        DeviceMemory memory = open(EnumSet.allOf(ReclaimStep.class));
        memory.setCurrent("direct");
        Thread second =
                Thread.ofPlatform().unstarted(() -> memory.free(memory.allocate(100 * MIB, DEVICE, stream), stream));
        Hoard hoard = new Hoard(second);
        Allocator hoarding = memory.open(OpenOptions.made("hoard", hoard));
        memory.free(memory.allocate(100 * MIB, DEVICE, stream), stream);
        second.join();
        assertThat(hoard.trims).hasValue(1);
        hoarding.close();
    }

    /// Keeps most of the device idle, and gives it back when somebody else waits behind whoever asks for it.
    private final class Hoard implements DeviceAllocator {
        private final AtomicInteger trims = new AtomicInteger();
        private final Thread second;
        private long idle = gpu.memory().allocate(DEVICE, 210 * MIB);

        Hoard(Thread second) {
            this.second = second;
        }

        @Override
        public long allocate(long byteSize, int device, long on) {
            throw new IllegalStateException("nobody asks it");
        }

        @Override
        public void free(long address, long byteSize, int device, long on) {
            throw new IllegalStateException("nothing is alive");
        }

        @Override
        public long trim(int device, long keepBytes) {
            trims.incrementAndGet();
            if (idle == 0) {
                return 0;
            }
            second.start();
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
            while (second.getState() != Thread.State.TIMED_WAITING && System.nanoTime() < deadline) {
                LockSupport.parkNanos(100_000);
            }
            gpu.memory().free(device, idle);
            idle = 0;
            return 210 * MIB;
        }
    }

    /// What is freed into another allocator is idle there, and has to be fetched.
    @Test
    void whoWaitsForFreesTakesFromOthersAgain() throws Exception {
        DeviceMemory memory = open(DeviceMemory.builder(gpu).waitForFrees(Duration.ofSeconds(20)));
        memory.setCurrent("caching");
        Allocator elsewhere = memory.open("caching");
        long block = elsewhere.allocate(MOST, DEVICE, stream);
        CountDownLatch asked = new CountDownLatch(1);
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (_, _) -> {
            asked.countDown(); // the last step before the wait
            return 0;
        });
        Thread freeing = Thread.ofPlatform().start(() -> {
            while (asked.getCount() != 0) {
                LockSupport.parkNanos(100_000);
            }
            LockSupport.parkNanos(20_000_000); // so that the wait has begun, mostly
            memory.free(block, stream);
        });
        memory.free(memory.allocate(MOST, DEVICE, stream), stream);
        freeing.join();
    }
}
