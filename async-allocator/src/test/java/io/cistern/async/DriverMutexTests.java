package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;
import static org.mockito.Mockito.withSettings;

import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Graphs;
import io.cistern.cuda.MemoryPools;
import io.cistern.spi.StreamOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Threads that take turns, on a driver that counts who is in it.
@Timeout(60)
class DriverMutexTests {
    private static final int DEVICE = 0;
    private static final int THREADS = 4;
    private static final long FREEING = 0x51;
    private static final long USING = 0x52;

    private final CudaDriver driver = mock(CudaDriver.class, withSettings().stubOnly());
    private final MemoryPools pools = mock(MemoryPools.class, withSettings().stubOnly());
    private final Graphs graphs = mock(Graphs.class, withSettings().stubOnly());
    private final StreamOrder order = mock(StreamOrder.class, withSettings().stubOnly());
    private final AtomicInteger inside = new AtomicInteger();
    private final AtomicInteger most = new AtomicInteger();
    private final AtomicLong addresses = new AtomicLong(512);
    private AsyncAllocator allocator;

    @BeforeEach
    void open() {
        when(driver.pools()).thenReturn(pools);
        when(driver.graphs()).thenReturn(graphs);
        when(graphs.captureStatus(anyInt(), anyLong())).thenReturn(CaptureStatus.NONE);
        when(pools.create(any())).thenReturn(7L);
        when(pools.allocateFrom(anyInt(), anyLong(), anyLong(), anyLong())).thenAnswer(_ -> {
            most.accumulateAndGet(inside.incrementAndGet(), Math::max);
            LockSupport.parkNanos(20_000);
            inside.decrementAndGet();
            return addresses.addAndGet(512);
        });
        use(AsyncOptions.USUAL);
    }

    private void use(AsyncOptions options) {
        allocator = AsyncFixture.async(driver, 1, options, order);
    }

    @AfterEach
    void nobodyIsInside() {
        assertThat(inside).hasValue(0);
    }

    private void pairs(int count) {
        for (int i = 0; i < count; i++) {
            allocator.free(allocator.allocate(1000, DEVICE, 1), 1000, DEVICE, 1);
        }
    }

    /// Threads that begin together and take so many pairs each; then again, so that what they found out at first
    /// holds.
    private void threadsTake(int pairs) throws Exception {
        CyclicBarrier between = new CyclicBarrier(THREADS, () -> most.set(0));
        List<FutureTask<Void>> running = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            FutureTask<Void> task = new FutureTask<>(() -> {
                pairs(pairs);
                between.await();
                pairs(pairs);
                return null;
            });
            running.add(task);
            Thread.ofPlatform().start(task);
        }
        for (FutureTask<Void> task : running) {
            task.get(50, TimeUnit.SECONDS);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void threadsThatAllocateTogetherCallTheDriverOneAtATime(boolean adaptive) throws Exception {
        use(adaptive ? AsyncOptions.USUAL.withThreshold(new ReleaseThreshold.Adaptive()) : AsyncOptions.USUAL);
        threadsTake(3 * DriverMutex.CALLS_BETWEEN_LOOKS);
        assertThat(most).hasValue(1);
    }

    @Test
    void oneThreadTakesNone() {
        pairs(10 * DriverMutex.CALLS_BETWEEN_LOOKS);
        assertThat(allocator.takesTurns(DEVICE)).isFalse();
    }

    @Test
    void whoIsLeftAloneTakesNoneAfterAWhile() throws Exception {
        threadsTake(3 * DriverMutex.CALLS_BETWEEN_LOOKS);
        assertThat(allocator.takesTurns(DEVICE)).isTrue();
        pairs(DriverMutex.CALLS_ALONE);
        assertThat(allocator.takesTurns(DEVICE)).isFalse();
        pairs(10 * DriverMutex.CALLS_BETWEEN_LOOKS);
        assertThat(allocator.takesTurns(DEVICE)).isFalse();
    }

    @Test
    void usesOfOtherStreamsAreSeenDuringTurnsAndAfterThem() throws Exception {
        threadsTake(3 * DriverMutex.CALLS_BETWEEN_LOOKS);
        allocator.recordUse(512, DEVICE, USING);
        allocator.free(512, 1000, DEVICE, FREEING); // there is no fence to wait for
        FutureTask<Void> other = new FutureTask<>(() -> pairs(1), null);
        Thread.ofPlatform().start(other);
        other.get(10, TimeUnit.SECONDS);
        assertThat(allocator.takesTurns(DEVICE)).as("each turn ended").isTrue();
        allocator.recordUse(512, DEVICE, USING);
        pairs(DriverMutex.CALLS_ALONE + 1);
        assertThat(allocator.takesTurns(DEVICE)).isFalse();
        when(order.record(DEVICE, USING)).thenReturn(9L);
        allocator.free(512, 1000, DEVICE, FREEING);
        assertThat(allocator.statistics(DEVICE)).containsEntry("pool.waiting_bytes", 1000L);
    }

    /// A refusal is no reason to keep the lock.
    @Test
    void aTurnEndsWithAFailureToo() throws Exception {
        threadsTake(3 * DriverMutex.CALLS_BETWEEN_LOOKS);
        when(pools.allocateFrom(anyInt(), anyLong(), anyLong(), anyLong()))
                .thenThrow(new IllegalStateException("in a test"));
        FutureTask<Throwable> other = new FutureTask<>(() -> catchThrowable(() -> pairs(1)));
        assertThat(catchThrowable(() -> pairs(1))).isInstanceOf(IllegalStateException.class);
        Thread.ofPlatform().start(other);
        assertThat(other.get(10, TimeUnit.SECONDS)).isInstanceOf(IllegalStateException.class);
    }

    /// A stack overflow may keep a thread from ending its turn.
    @Test
    void whoWaitsInVainGoesOnAndNobodyTakesTurnsAnyMore() throws Exception {
        DriverMutex mutex = new DriverMutex(1);
        assertThat(mutex.begin()).isTrue();
        FutureTask<Boolean> other = new FutureTask<>(mutex::begin);
        Thread.ofPlatform().start(other);
        assertThat(other.get(10, TimeUnit.SECONDS)).isFalse();
        assertThat(mutex.begin()).isFalse();
        assertThat(mutex.areWanted()).isFalse();
    }

    @Test
    void anInterruptedThreadGoesOnWithoutATurn() throws Exception {
        DriverMutex mutex = new DriverMutex();
        assertThat(mutex.begin()).isTrue();
        FutureTask<Boolean> other = new FutureTask<>(() -> {
            Thread.currentThread().interrupt();
            return !mutex.begin() && Thread.interrupted();
        });
        Thread.ofPlatform().start(other);
        assertThat(other.get(10, TimeUnit.SECONDS)).isTrue();
        assertThat(mutex.end()).isFalse();
    }
}
