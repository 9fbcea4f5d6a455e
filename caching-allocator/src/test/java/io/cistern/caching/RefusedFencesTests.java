package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.testkit.StreamLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// A driver that gives no fence, neither behind one stream nor behind all, and does not wait either: blocks that other
/// streams use wait on, and are had once it answers again.
class RefusedFencesTests {
    private static final long BYTES = 8L << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(64L << 20).build();
    private final CachingAllocator caching = new GpuContext(gpu).open(PageReuse.WAIT, false);
    private final long stream = gpu.streams().create(0);
    private final long other = gpu.streams().create(0);
    private final long third = gpu.streams().create(0);

    @AfterEach
    void close() {
        caching.checkInvariants();
        caching.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void aBlockThatOtherStreamsUseIsNotHadWithoutAFence() {
        long used = caching.allocate(BYTES, 0, stream);
        caching.recordUse(used, 0, other);
        caching.recordUse(used, 0, third);
        try (StreamLatch latch = new StreamLatch(gpu, 0)) {
            latch.hold(third);
            caching.free(used, BYTES, 0, stream);
            refuse(1);
            long first = caching.allocate(BYTES, 0, stream);
            refuse(0);
            long second = caching.allocate(BYTES, 0, stream);
            gpu.faults().clear();
            long last = caching.allocate(BYTES, 0, stream);
            assertThat(used).isNotIn(first, second, last);
            caching.free(first, BYTES, 0, stream);
            caching.free(second, BYTES, 0, stream);
            caching.free(last, BYTES, 0, stream);
            latch.release();
        }
        gpu.devices().synchronize(0);
        caching.trim(0, 0);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(64L << 20);
    }

    @Test
    void anUnfencedStreamsBlocksAreNotItsHandlesNextStreams() {
        long block = caching.allocate(BYTES, 0, other);
        try (StreamLatch latch = new StreamLatch(gpu, 0)) {
            latch.hold(other);
            gpu.copies().fillBytes(0, block, (byte) 1, BYTES, other);
            caching.free(block, BYTES, 0, other);
            refuse(0);
            caching.streamClosing(0, other);
            gpu.streams().destroy(0, other);
            long next = gpu.streams().create(0);
            assertThat(next).as("the handle comes again").isEqualTo(other);
            long own = caching.allocate(BYTES, 0, next);
            assertThat(own).isNotEqualTo(block);
            caching.free(own, BYTES, 0, next);
            assertThat(caching.trim(0, 0)).isZero();
            gpu.faults().clear();
            caching.streamClosing(0, next);
            gpu.streams().destroy(0, next);
            latch.release();
        }
        gpu.devices().synchronize(0);
        caching.trim(0, 0);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(64L << 20);
    }

    /// @param after so many fences
    private void refuse(int after) {
        gpu.faults().failOn(DriverCall.EVENT_RECORD, after, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.CONTEXT_RECORD_EVENT, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
    }
}
