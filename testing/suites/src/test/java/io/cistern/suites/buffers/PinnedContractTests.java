package io.cistern.suites.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.CudaStream;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.testkit.StreamLatch;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/// The cache of pinned memory, which follows the rules of PyTorch's.
abstract class PinnedContractTests extends BufferFixture {
    PinnedContractTests(BufferContract suite) {
        super(suite);
    }

    private PinnedBuffer pinned(long byteSize) {
        return closedLater(PinnedMemory.of(memory).allocate(byteSize));
    }

    private static long addressOf(PinnedBuffer buffer) {
        return buffer.segment().address();
    }

    @Test
    void freedMemoryIsUsedAgain() {
        PinnedBuffer first = pinned(5000);
        long address = addressOf(first);
        first.close();
        assertThat(addressOf(pinned(8000))).isEqualTo(address);
        assertThat(addressOf(pinned(8000))).isNotEqualTo(address);
    }

    @Test
    void memoryOfACopyUnderWayIsNotUsedAgain() {
        StreamLatch latch = latch();
        DeviceBuffer buffer = buffer(8192);
        pinned(8192).close();
        PinnedBuffer spare = pinned(8192);
        PinnedBuffer sent = pinned(8192);
        long address = addressOf(sent);
        spare.close();
        latch.hold(stream.handle());
        buffer.copyFrom(sent, stream.handle(), CopyMode.NON_BLOCKING);
        sent.close();
        assertThat(addressOf(pinned(8192))).isNotEqualTo(address);
        latch.release();
        stream.synchronize();
        assertThat(addressOf(pinned(8192))).isEqualTo(address);
    }

    @Test
    void memoryWaitsForAStreamThatEndedMeanwhile() {
        StreamLatch latch = latch();
        CudaStream ending = CudaStream.open(memory, DEVICE);
        DeviceBuffer buffer = buffer(8192);
        PinnedBuffer spare = pinned(8192);
        PinnedBuffer sent = pinned(8192);
        long address = addressOf(sent);
        spare.close();
        latch.hold(ending.handle());
        buffer.copyFrom(sent, ending.handle(), CopyMode.NON_BLOCKING);
        ending.close();
        sent.close();
        assertThat(addressOf(pinned(8192))).isNotEqualTo(address);
        latch.release();
        driver.devices().synchronize(DEVICE);
        assertThat(addressOf(pinned(8192))).isEqualTo(address);
    }

    @Test
    void sizesAreCountedInWholeBlocks() {
        PinnedMemory pinned = PinnedMemory.of(memory);
        PinnedBuffer small = pinned(40 * KIB);
        PinnedBuffer large = pinned(80 * KIB);
        Map<String, Long> two = pinned.statistics();
        assertThat(two)
                .containsEntry("allocations.current", 2L)
                .containsEntry("allocated_bytes.current", 192L * KIB)
                .containsEntry("active_requests.current", 2L)
                .containsEntry("active_bytes.current", 192L * KIB)
                .containsEntry("num_host_alloc", 2L)
                .containsEntry("host_alloc_time.count", 2L);
        small.close();
        pinned(64 * KIB).close();
        large.close();
        Map<String, Long> freed = pinned.statistics();
        assertThat(freed)
                .containsEntry("allocations.current", 2L)
                .containsEntry("active_requests.current", 0L)
                .containsEntry("active_requests.allocated", 3L)
                .containsEntry("active_requests.freed", 3L)
                .containsEntry("active_bytes.peak", 192L * KIB)
                .containsEntry("active_bytes.allocated", 256L * KIB)
                .containsEntry("num_host_alloc", 2L);
        assertThat(pinned.trim()).isEqualTo(192L * KIB);
        assertThat(pinned.statistics())
                .containsEntry("allocations.current", 0L)
                .containsEntry("num_host_free", 2L)
                .containsEntry("host_free_time.count", 2L);
    }

    @Test
    void aPeakBeginsAnew() {
        pinned(4096).close();
        PinnedMemory.of(memory).resetPeaks();
        assertThat(PinnedMemory.of(memory).statistics())
                .containsEntry("active_bytes.peak", 0L)
                .containsEntry("allocated_bytes.peak", 4096L);
        pinned(4096).close();
        assertThat(PinnedMemory.of(memory).statistics()).containsEntry("active_bytes.peak", 4096L);
    }

    /// The same as in PyTorch, which counts each size for itself.
    @Test
    void aPeakIsTheSumOfThoseOfTheSizes() {
        PinnedBuffer first = pinned(4096);
        PinnedBuffer second = pinned(4096);
        first.close();
        second.close();
        pinned(4096);
        pinned(8192).close();
        assertThat(PinnedMemory.of(memory).statistics())
                .containsEntry("active_requests.current", 1L)
                .containsEntry("active_requests.peak", 3L)
                .containsEntry("active_bytes.peak", 16_384L);
    }

    @Test
    void trimLeavesWhatIsUsed() {
        PinnedBuffer kept = pinned(4096);
        kept.segment().fill((byte) 3);
        pinned(4096).close();
        assertThat(PinnedMemory.of(memory).trim()).isEqualTo(4096);
        assertThat(kept.segment().get(java.lang.foreign.ValueLayout.JAVA_BYTE, 4095))
                .isEqualTo((byte) 3);
    }

    @Test
    void whatArraysAreCopiedThroughIsIdleMemory() {
        bufferOf(filled(3 * MIB, 1));
        assertThat(PinnedMemory.of(memory).statistics()).containsEntry("active_requests.current", 0L);
        assertThat(PinnedMemory.of(memory).trim()).isPositive();
        assertThat(PinnedMemory.of(memory).statistics()).containsEntry("allocations.current", 0L);
    }

    @Test
    void aClosedBufferCanNotBeUsed() {
        PinnedBuffer buffer = pinned(100);
        buffer.close();
        buffer.close();
        assertThatIllegalStateException().isThrownBy(buffer::segment).withMessageContaining("is closed");
        assertThatIllegalStateException().isThrownBy(() -> buffer.recordUse(DEVICE, stream.handle()));
        assertThat(PinnedMemory.of(memory).statistics()).containsEntry("active_requests.freed", 1L);
    }

    @Test
    void sizesThatCanNotBeAreRefused() {
        assertThat(pinned(0).byteSize()).isZero();
        assertThatIllegalArgumentException().isThrownBy(() -> pinned(-1));
        assertThatIllegalArgumentException().isThrownBy(() -> pinned(1L << 43));
    }

    @Test
    void threadsGetMemoryOfTheirOwn() throws Exception {
        List<Thread> threads = new ArrayList<>();
        List<Long> spoiled = new ArrayList<>();
        for (int t = 1; t <= 4; t++) {
            byte own = (byte) t;
            threads.add(Thread.ofPlatform().start(() -> {
                for (int i = 0; i < 500; i++) {
                    try (PinnedBuffer buffer = PinnedMemory.of(memory).allocate(4096)) {
                        buffer.segment().fill(own);
                        Thread.onSpinWait();
                        if (buffer.segment().get(java.lang.foreign.ValueLayout.JAVA_BYTE, 17) != own) {
                            synchronized (spoiled) {
                                spoiled.add(buffer.segment().address());
                            }
                        }
                    }
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(spoiled).isEmpty();
        assertThat(PinnedMemory.of(memory).statistics())
                .containsEntry("active_requests.allocated", 2000L)
                .containsEntry("active_requests.current", 0L);
    }
}
