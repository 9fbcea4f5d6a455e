package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// What a reset of peaks and counts leaves, with a plug-in that knows nothing of either.
class StatisticsResetTests {
    private static final long MIB = 1L << 20;

    /// What [AllocatorStatistics#requestedPeakBytes] may be too high for each thread, if that is over 2 %.
    private static final long SLACK = 64 << 10;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(1L << 30).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final Allocator plugin = memory.open(OpenOptions.made("plug-in", new EverNewAddresses()));

    @BeforeEach
    void serve() {
        memory.currents().set(plugin);
    }

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    private AllocatorStatistics statistics() {
        return plugin.statistics(0);
    }

    private void pair(long byteSize) {
        memory.free(memory.allocate(byteSize, 0, 0), 0);
    }

    @Test
    void thePeakBeginsAtWhatIsAliveAndIsExactForTheThreadThatResets() {
        long kept = memory.allocate(100_000, 0, 0);
        pair(1_700_000);
        assertThat(statistics().requestedPeakBytes()).isEqualTo(1_800_000);
        plugin.resetPeaks(0);
        assertThat(statistics().requestedPeakBytes()).isEqualTo(100_000);
        pair(500);
        assertThat(statistics().requestedPeakBytes()).isEqualTo(100_500);
        pair(30 * MIB); // more than a thread has in credit
        pair(30 * MIB);
        assertThat(statistics().requestedPeakBytes()).isEqualTo(100_000 + 30 * MIB);
        plugin.resetPeaks(0);
        pair(700);
        assertThat(statistics().requestedPeakBytes()).isEqualTo(100_700);
        memory.free(kept, 0);
    }

    @Test
    void theCountsBeginAtZeroAndWhatIsAliveStaysAlive() {
        long kept = memory.allocate(1000, 0, 0);
        pair(500);
        memory.allocators().forEach(each -> each.resetTotals(0));
        assertThat(statistics().requestedPeakBytes()).isEqualTo(1500);
        memory.allocators().forEach(each -> each.resetPeaks(0));
        assertThat(statistics().allocations()).isZero();
        assertThat(statistics().frees()).isZero();
        assertThat(statistics().requestedTotalBytes()).isZero();
        assertThat(statistics().liveBlocks()).isOne();
        assertThat(statistics().requestedBytes()).isEqualTo(1000);
        assertThat(statistics().requestedPeakBytes()).isEqualTo(1000);
        pair(20);
        memory.free(kept, 0);
        assertThat(statistics().allocations()).isOne();
        assertThat(statistics().frees()).isEqualTo(2);
        assertThat(statistics().requestedTotalBytes()).isEqualTo(20);
        assertThat(statistics().liveBlocks()).isZero();
        assertThat(plugin.memoryStatistics(0)).containsEntry("requested_bytes.all.freed", 1020L);
    }

    @Test
    void aResetIsOfOneDevice() {
        memory.free(memory.allocate(5000, 1, 0), 0);
        memory.allocators().forEach(each -> each.resetPeaks(0));
        memory.allocators().forEach(each -> each.resetTotals(0));
        assertThat(plugin.statistics(1).requestedPeakBytes()).isEqualTo(5000);
        assertThat(plugin.statistics(1).allocations()).isOne();
        assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> plugin.resetPeaks(2));
    }

    @Test
    void blocksChargedToALimitArePartOfThePeak() {
        try (Scope _ = plugin.enter(ScopeOptions.all().limit(MemoryLimit.of("scope", 10 * MIB)))) {
            pair(MIB);
            plugin.resetPeaks(0);
            pair(2000);
        }
        assertThat(statistics().requestedPeakBytes()).isBetween(2000L, 2000 + 2 * SLACK);
    }

    @Test
    void aVirtualThreadMayReset() throws InterruptedException {
        pair(40 * MIB);
        Thread.ofVirtual().start(() -> plugin.resetPeaks(0)).join();
        pair(1000);
        assertThat(statistics().requestedPeakBytes()).isBetween(1000L, 1000 + SLACK);
    }

    /// Each phase has a peak that is known, since all threads hold their blocks at its middle; another thread
    /// resets between phases.
    @Test
    void afterAResetThePeakOfManyThreadsKeepsItsBound() throws Exception {
        int threads = 4;
        int phases = 50;
        CyclicBarrier barrier = new CyclicBarrier(threads + 1);
        try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            List<Future<?>> running = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                running.add(executor.submit(() -> {
                    for (int phase = 0; phase < phases; phase++) {
                        barrier.await(1, TimeUnit.MINUTES);
                        long first = memory.allocate(perThread(phase) / 2, 0, 0);
                        pair(perThread(phase) / 2);
                        long second = memory.allocate(perThread(phase) / 2, 0, 0);
                        barrier.await(1, TimeUnit.MINUTES);
                        memory.free(first, 0);
                        memory.free(second, 0);
                        barrier.await(1, TimeUnit.MINUTES);
                    }
                    return null;
                }));
            }
            for (int phase = 0; phase < phases; phase++) {
                memory.allocators().forEach(each -> each.resetPeaks(0));
                barrier.await(1, TimeUnit.MINUTES);
                barrier.await(1, TimeUnit.MINUTES);
                barrier.await(1, TimeUnit.MINUTES);
                long peak = threads * perThread(phase);
                assertThat(statistics().requestedPeakBytes())
                        .as("phase " + phase)
                        .isBetween(peak, peak + Math.max(peak / 50, (threads + 1) * SLACK));
            }
            for (Future<?> each : running) {
                each.get();
            }
        }
    }

    /// Large phases before small ones, so that a peak that is not reset would show.
    private static long perThread(int phase) {
        return phase % 2 == 0 ? 64 * MIB : 4000;
    }

    /// While others allocate and nothing but the meter's own order helps.
    @Test
    void resetsUnderTrafficLeaveNoPeakBelowWhatIsAlive() throws Exception {
        try (ExecutorService executor = Executors.newFixedThreadPool(2)) {
            List<Future<?>> running = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                running.add(executor.submit(() -> {
                    for (int round = 0; round < 20_000; round++) {
                        pair(round % 7 * MIB + 1);
                    }
                }));
            }
            long kept = memory.allocate(9 * MIB, 0, 0);
            while (running.stream().anyMatch(each -> !each.isDone())) {
                plugin.resetPeaks(0);
                plugin.resetTotals(0);
                assertThat(statistics().requestedPeakBytes()).isGreaterThanOrEqualTo(9 * MIB);
            }
            for (Future<?> each : running) {
                each.get();
            }
            plugin.resetPeaks(0);
            assertThat(statistics().requestedPeakBytes()).isBetween(9 * MIB, 9 * MIB + 3 * SLACK);
            memory.free(kept, 0);
            assertThat(statistics().requestedBytes()).isZero();
        }
    }

    private static final class EverNewAddresses implements DeviceAllocator {
        private final AtomicLong next = new AtomicLong(MIB);

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return next.getAndAdd(64 * MIB);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }
}
