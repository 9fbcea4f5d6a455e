package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaException;
import io.cistern.simulated.SimulatedGpu;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Pinning memory that exists, and totals that begin anew.
class PinnedRegionTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final PinnedMemory pinned = PinnedMemory.of(memory);

    @AfterEach
    void close() {
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void existingMemoryIsPinnedUntilTheRegionCloses() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment own = arena.allocate(1 << 16, 4096);
            PinnedRegion region = pinned.register(own);
            assertThat(region.segment()).isEqualTo(own);
            assertThatThrownBy(() -> pinned.register(own)).isInstanceOf(CudaException.class);
            region.close();
            region.close();
            pinned.register(own).close();
        }
    }

    @Test
    void memoryOnTheHeapAndNothingAreRefused() {
        assertThatIllegalArgumentException().isThrownBy(() -> pinned.register(MemorySegment.ofArray(new byte[8])));
        assertThatIllegalArgumentException().isThrownBy(() -> pinned.register(MemorySegment.NULL));
    }

    @Test
    void totalsBeginAnewAndTheRestStays() {
        PinnedBuffer kept = pinned.allocate(5000);
        pinned.allocate(5000).close();
        pinned.resetTotals();
        assertThat(pinned.statistics())
                .containsEntry("active_requests.current", 1L)
                .containsEntry("active_requests.allocated", 0L)
                .containsEntry("active_requests.freed", 0L)
                .containsEntry("allocated_bytes.allocated", 0L)
                .containsEntry("allocated_bytes.freed", 0L)
                .containsEntry("num_host_alloc", 0L)
                .containsEntry("host_alloc_time.total", 0L);
        assertThat(pinned.statistics().get("allocations.peak")).isPositive();
        kept.close();
        pinned.allocate(1 << 20).close();
        assertThat(pinned.statistics())
                .containsEntry("active_requests.current", 0L)
                .containsEntry("active_requests.allocated", 1L)
                .containsEntry("active_requests.freed", 2L)
                .containsEntry("num_host_alloc", 1L);
    }

    /// Users of PyTorch complain of the next power of two.
    @Test
    void largeBlocksWasteAnEighthAtMost() {
        assertThat(PinnedMemory.pinnedBytes(1100L << 20)).isEqualTo(1152L << 20);
        assertThat(PinnedMemory.pinnedBytes((1L << 20) + 1)).isEqualTo((1L << 20) + (1 << 17));
    }
}
