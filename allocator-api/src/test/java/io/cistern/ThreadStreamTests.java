package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CisternException;
import io.cistern.cuda.Streams;
import io.cistern.errors.UnusableStreamException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The per-thread default stream: a stream of its own for a platform thread, and none for a virtual one, which
/// changes the thread that carries it.
class ThreadStreamTests {
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(1L << 30).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final MemoryLimit limit = MemoryLimit.of("limit", 1 << 20);
    private final CountingAllocator counting = new CountingAllocator();
    private final Allocator allocator =
            memory.open(OpenOptions.made("counting", counting).limit(limit));

    @AfterEach
    void nothingIsLeft() {
        assertThat(limit.usedBytes()).isZero();
        assertThat(allocator.statistics(0).liveBlocks()).isZero();
        memory.close();
        assertThat(allocator.isDrained()).isTrue();
        gpu.close();
    }

    /// What a virtual thread gets for doing something, or nothing.
    private static List<Throwable> onVirtualThread(Runnable action) throws InterruptedException {
        List<Throwable> thrown = new ArrayList<>();
        Thread.ofVirtual()
                .start(() -> {
                    try {
                        action.run();
                    } catch (CisternException failure) {
                        thrown.add(failure);
                    }
                })
                .join();
        return thrown;
    }

    private static void assertRefused(Runnable action) throws InterruptedException {
        assertThat(onVirtualThread(action))
                .singleElement()
                .satisfies(failure -> assertThat(failure)
                        .isInstanceOfSatisfying(UnusableStreamException.class, refusal -> {
                            assertThat(refusal.stream()).isEqualTo(Streams.PER_THREAD_DEFAULT);
                            assertThat(refusal.device()).isZero();
                        })
                        .hasMessageContaining("virtual thread"));
    }

    @Test
    void isRefusedToAVirtualThreadThatAllocates() throws InterruptedException {
        memory.currents().set(allocator);
        assertRefused(() -> memory.allocate(1000, 0, Streams.PER_THREAD_DEFAULT));
        assertRefused(() -> allocator.allocate(1000, 0, Streams.PER_THREAD_DEFAULT));
        assertThat(counting.allocations).isZero();
        assertThat(allocator.statistics(0).allocations()).isZero();
    }

    @Test
    void isRefusedToAVirtualThreadThatFreesAndTheBlockStaysAlive() throws InterruptedException {
        long address = allocator.allocate(1000, 0, Streams.PER_THREAD_DEFAULT);
        assertRefused(() -> memory.free(address, Streams.PER_THREAD_DEFAULT));
        assertThat(counting.frees).isZero();
        assertThat(allocator.statistics(0).liveBlocks()).isOne();
        memory.free(address, Streams.PER_THREAD_DEFAULT);
        assertThat(counting.frees).isOne();
    }

    @Test
    void isRefusedToAVirtualThreadThatRecordsAUse() throws InterruptedException {
        long address = allocator.allocate(1000, 0, 0);
        assertRefused(() -> memory.recordUse(address, Streams.PER_THREAD_DEFAULT));
        memory.free(address, 0);
    }

    @Test
    void aRefusalKeepsTheFreeOfAClosedAllocatorsBlockForLater() throws InterruptedException {
        long address = allocator.allocate(1000, 0, 0);
        allocator.close();
        assertRefused(() -> memory.free(address, Streams.PER_THREAD_DEFAULT));
        assertThat(allocator.isDrained()).isFalse();
        memory.free(address, 0);
        assertThat(allocator.isDrained()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(longs = {0, Streams.LEGACY_DEFAULT, 4711})
    void everyOtherStreamServesVirtualThreads(long stream) throws InterruptedException {
        assertThat(onVirtualThread(() -> memory.free(allocator.allocate(1000, 0, stream), stream)))
                .isEmpty();
        assertThat(counting.frees).isOne();
    }

    /// Counts.
    private static final class CountingAllocator implements DeviceAllocator {
        private int allocations;
        private int frees;

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return (1L << 20) + 4096L * ++allocations;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            frees++;
        }
    }
}
