package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryMeasure;
import io.cistern.MemoryPool;
import io.cistern.Registration;
import io.cistern.spi.TrimMode;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Listeners of thresholds and of the driver's budget.
final class ThresholdTests extends PoolFixture {
    private static final long THRESHOLD = 100 * MIB;
    private final BlockingQueue<Long> heard = new LinkedBlockingQueue<>();

    ThresholdTests() {
        super(1024 * MIB);
        memory.setCurrent("caching");
    }

    private void hear(int device, long threshold, long byteSize) {
        heard.add(byteSize);
    }

    private Long next() throws InterruptedException {
        return heard.poll(10, TimeUnit.SECONDS);
    }

    /// Since calls come on one thread in their order, a later crossing shows that there was none before.
    private void assertNothingWasHeard() throws InterruptedException {
        CountDownLatch called = new CountDownLatch(1);
        Registration end =
                memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, 0, (_, _, _) -> called.countDown());
        memory.free(memory.allocate(MIB, DEVICE, stream), stream);
        assertThat(called.await(10, TimeUnit.SECONDS)).isTrue();
        end.close();
        assertThat(heard).isEmpty();
    }

    @Test
    void eachCrossingIsToldOnce() throws InterruptedException {
        memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, this::hear);
        long first = memory.allocate(THRESHOLD, DEVICE, stream);
        assertThat(next()).as("a little early").isEqualTo(THRESHOLD);
        long second = memory.allocate(4 * MIB, DEVICE, stream);
        long third = memory.allocate(50 * MIB, DEVICE, stream);
        memory.free(third, stream);
        memory.free(first, stream); // below: from here on it counts again
        assertThat(heard).isEmpty();
        first = memory.allocate(THRESHOLD, DEVICE, stream);
        assertThat(next()).isGreaterThan(THRESHOLD);
        memory.free(second, stream);
        memory.free(first, stream);
        assertThat(heard).isEmpty();
    }

    @Test
    void whatIsAboveAlreadyIsToldAtOnce() throws InterruptedException {
        long block = memory.allocate(THRESHOLD + 1, DEVICE, stream);
        memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, this::hear);
        assertThat(next()).isEqualTo(THRESHOLD + 1);
        memory.free(block, stream);
    }

    @Test
    void bytesThatWereFreedBeforeDoNotCount() throws InterruptedException {
        memory.free(memory.allocate(3 * THRESHOLD, DEVICE, stream), stream);
        memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, this::hear);
        memory.free(memory.allocate(THRESHOLD / 100 * 98, DEVICE, stream), stream);
        assertNothingWasHeard();
    }

    @Test
    void leasesOfManyThreadsDoNotCount() throws InterruptedException {
        memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, 16 * MIB, this::hear);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            threads.add(Thread.ofPlatform().start(() -> {
                List<Long> blocks = new ArrayList<>();
                for (int block = 0; block < 1024; block++) { // 1 MiB a thread, in all half of the threshold
                    blocks.add(memory.allocate(1024, DEVICE, stream));
                }
                blocks.forEach(block -> memory.free(block, stream));
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertNothingWasHeard();
    }

    @Test
    void aRiseIsToldAgainThoughItWasThereBeforeTheListener() throws InterruptedException {
        long block = memory.allocate(3 * THRESHOLD, DEVICE, stream);
        memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, this::hear);
        assertThat(next()).isEqualTo(3 * THRESHOLD);
        memory.free(block, stream);
        block = memory.allocate(2 * THRESHOLD, DEVICE, stream);
        assertThat(next()).isEqualTo(2 * THRESHOLD);
        memory.free(block, stream);
    }

    @Test
    void smallBlocksAreNeverToldTooLate() throws InterruptedException {
        memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, 16 * MIB, this::hear);
        List<Long> blocks = new ArrayList<>();
        while (blocks.size() * 1024 <= 16 * MIB) {
            blocks.add(memory.allocate(1024, DEVICE, stream));
        }
        assertThat(next()).as("told, and at most two percent early").isGreaterThan(16 * MIB * 98 / 100);
        blocks.forEach(block -> memory.free(block, stream));
    }

    @Test
    void aDeviceCountsAllAllocatorsAndAnAllocatorItself() throws InterruptedException {
        Allocator other = memory.open("caching");
        BlockingQueue<Long> ofOther = new LinkedBlockingQueue<>();
        memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, this::hear);
        other.onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, (_, _, bytes) -> ofOther.add(bytes));
        long mine = memory.allocate(60 * MIB, DEVICE, stream);
        long its = other.allocate(60 * MIB, DEVICE, stream);
        assertThat(next()).isEqualTo(120 * MIB);
        assertThat(ofOther).isEmpty();
        long more = other.allocate(60 * MIB, DEVICE, stream);
        assertThat(ofOther.poll(10, TimeUnit.SECONDS)).isEqualTo(120 * MIB);
        for (long block : new long[] {mine, its, more}) {
            memory.free(block, stream);
        }
        assertThat(heard).isEmpty();
    }

    @Test
    void anAllocatorOpenedLaterCountsToo() throws InterruptedException {
        memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, this::hear);
        try (MemoryPool later = memory.pools().open("caching")) {
            long block = later.allocate(THRESHOLD + 1, DEVICE, stream);
            assertThat(next()).isEqualTo(THRESHOLD + 1);
            memory.free(block, stream);
        }
        assertNothingWasHeard();
    }

    @Test
    void idleMemoryCountsAsReserved() throws InterruptedException {
        try (MemoryPool pool = memory.pools().open("caching:source=linear")) {
            pool.onThreshold(DEVICE, MemoryMeasure.RESERVED, THRESHOLD, this::hear);
            memory.free(pool.allocate(90 * MIB, DEVICE, stream), stream);
            long other = gpu.streams().create(DEVICE);
            long block = pool.allocate(60 * MIB, DEVICE, other);
            assertThat(pool.reservedBytes(DEVICE).orElseThrow()).isGreaterThan(THRESHOLD);
            assertThat(next()).isEqualTo(pool.reservedBytes(DEVICE).orElseThrow());
            memory.free(block, other);
            pool.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            block = pool.allocate(THRESHOLD + MIB, DEVICE, stream);
            assertThat(next()).as("after it went below").isGreaterThan(THRESHOLD);
            memory.free(block, stream);
        }
    }

    @Test
    void anAllocatorThatTellsNothingCountsWithWhatIsRequested() throws InterruptedException {
        Allocator direct = memory.open("direct");
        direct.onThreshold(DEVICE, MemoryMeasure.RESERVED, THRESHOLD, this::hear);
        long block = direct.allocate(THRESHOLD + MIB, DEVICE, stream);
        assertThat(next()).isEqualTo(THRESHOLD + MIB);
        memory.free(block, stream);
    }

    @Test
    void aListenerMayAllocateFreeAndThrow() throws InterruptedException {
        AtomicLong spare = new AtomicLong(memory.allocate(60 * MIB, DEVICE, stream));
        memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, (device, _, byteSize) -> {
            memory.free(spare.getAndSet(0), stream);
            memory.free(memory.allocate(MIB, device, stream), stream);
            heard.add(byteSize);
            throw new IllegalStateException("thrown by the test");
        });
        long block = memory.allocate(60 * MIB, DEVICE, stream);
        assertThat(next()).isEqualTo(120 * MIB);
        long again = memory.allocate(60 * MIB, DEVICE, stream);
        assertThat(next()).isGreaterThanOrEqualTo(120 * MIB);
        memory.free(block, stream);
        memory.free(again, stream);
    }

    @Test
    void whoEndedIsNotCalled() throws InterruptedException {
        memory.listeners()
                .onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, this::hear)
                .close();
        memory.free(memory.allocate(THRESHOLD + 1, DEVICE, stream), stream);
        assertNothingWasHeard();
    }

    @Test
    void theOthersAreCalledAndTheThreadEndsWithTheLast() throws InterruptedException {
        Registration one =
                memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, (_, _, _) -> heard.add(-1L));
        Registration other = memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, this::hear);
        one.close();
        one.close();
        long block = memory.allocate(THRESHOLD + 1, DEVICE, stream);
        assertThat(next()).isEqualTo(THRESHOLD + 1);
        memory.free(block, stream);
        other.close();
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().equals("cistern-pressure")) {
                assertThat(thread.join(Duration.ofSeconds(10))).isTrue();
            }
        }
    }

    /// Both are due before the thread gets to them.
    @Test
    void aListenerThatAnotherOneEndedIsNotCalled() throws InterruptedException {
        CountDownLatch isDue = new CountDownLatch(1);
        memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, MIB, (_, _, _) -> await(isDue));
        Registration[] both = new Registration[2];
        for (int each = 0; each < 2; each++) {
            int other = 1 - each;
            both[each] = memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, (_, _, bytes) -> {
                both[other].close();
                heard.add(bytes);
            });
        }
        long block = memory.allocate(THRESHOLD + 1, DEVICE, stream);
        isDue.countDown();
        assertThat(next()).isEqualTo(THRESHOLD + 1);
        memory.free(block, stream);
        assertNothingWasHeard();
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void noCrossingIsLostBetweenThreads() throws InterruptedException {
        memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, THRESHOLD, this::hear);
        for (int round = 0; round < 200; round++) {
            Thread[] threads = new Thread[4];
            for (int i = 0; i < threads.length; i++) {
                threads[i] = Thread.ofPlatform().start(() -> {
                    memory.free(memory.allocate(40 * MIB, DEVICE, stream), stream);
                    memory.free(memory.allocate(50 * MIB, DEVICE, stream), stream);
                });
            }
            for (Thread thread : threads) {
                thread.join();
            }
            Thread.sleep(1);
            heard.clear();
            long block = memory.allocate(THRESHOLD + 1, DEVICE, stream);
            assertThat(next()).as("round %d", round).isGreaterThan(THRESHOLD);
            memory.free(block, stream);
        }
    }

    @Test
    void theDriversBudgetIsHeardOf() throws InterruptedException {
        Registration end = memory.listeners().onOverBudget(DEVICE, (_, over) -> heard.add(over));
        long block = memory.allocate(200 * MIB, DEVICE, stream);
        gpu.setMemoryBudget(DEVICE, 50 * MIB);
        assertThat(next()).isGreaterThanOrEqualTo(150 * MIB);
        end.close();
        gpu.setMemoryBudget(DEVICE, 1024 * MIB);
        gpu.setMemoryBudget(DEVICE, 50 * MIB);
        assertNothingWasHeard();
        memory.free(block, stream);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aListenerThatWasRemovedIsForgotten(boolean ofBudget) throws InterruptedException {
        assertIsForgotten(registered(memory, ofBudget, Registration::close));
    }

    @Test
    void theDriverKeepsNoListenerOfAClosedDeviceMemory() throws InterruptedException {
        DeviceMemory closed = DeviceMemory.builder(gpu).open();
        assertIsForgotten(registered(closed, true, _ -> closed.close()));
        assertThat(closed.allocators()).isEmpty();
    }

    /// Returns what a listener captured that was registered and removed.
    private WeakReference<Object> registered(DeviceMemory in, boolean ofBudget, Consumer<Registration> remove) {
        Object captured = new Object();
        Registration registration = ofBudget
                ? in.listeners().onOverBudget(DEVICE, (_, _) -> heard.add((long) captured.hashCode()))
                : in.listeners()
                        .onThreshold(
                                DEVICE,
                                MemoryMeasure.REQUESTED,
                                THRESHOLD,
                                (_, _, _) -> heard.add((long) captured.hashCode()));
        remove.accept(registration);
        return new WeakReference<>(captured);
    }

    private static void assertIsForgotten(WeakReference<Object> captured) throws InterruptedException {
        for (int i = 0; i < 100 && captured.get() != null; i++) {
            System.gc();
            Thread.sleep(10);
        }
        assertThat(captured.get()).isNull();
    }

    @Test
    void aNegativeThresholdIsRefused() {
        assertThatThrownBy(() -> memory.listeners().onThreshold(DEVICE, MemoryMeasure.REQUESTED, -1, this::hear))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> memory.listeners().onThreshold(1, MemoryMeasure.REQUESTED, 1, this::hear))
                .isInstanceOf(IndexOutOfBoundsException.class);
    }
}
