package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.Allocator;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.GraphCapture;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.TrimResult.Reason;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Blocks that another stream uses, while the driver gives no fence of it: it is captured, or the driver refuses. They
/// wait until there is one.
class UsesBesideCapturesTests extends AsyncFixture {
    /// Too small to fill a batch, which gets its fence when it is looked at.
    private static final long BLOCK = 16 * MIB;

    private final Allocator async = memory.open("async");
    private long block;

    /// A block of the first stream that the second one uses, in work that the latch holds.
    @BeforeEach
    void useBehindLatch() {
        block = async.allocate(BLOCK, DEVICE, stream);
        latch.hold(other);
        gpu.copies().fillBytes(DEVICE, block, (byte) 2, BLOCK, other);
        memory.recordUse(block, other);
    }

    /// Once the other stream is past it, the block goes to the driver like any.
    @AfterEach
    void theBlockIsFreedInTheEnd() {
        gpu.faults().clear();
        assertIsNotFreed();
        latch.release();
        gpu.devices().synchronize(DEVICE);
        async.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(gpu.calls().of(DriverCall.MEM_FREE_ASYNC)).isOne();
        assertThat(async.reservedBytes(DEVICE)).hasValue(0);
        assertThat(figure(async, "pool.waiting_bytes")).isZero();
        async.close();
    }

    private void assertIsNotFreed() {
        assertThat(figure(async, "pool.waiting_bytes")).isEqualTo(BLOCK);
        assertThat(gpu.calls().of(DriverCall.MEM_FREE_ASYNC)).isZero();
    }

    private void driverGivesNoFence() {
        gpu.faults().failOn(DriverCall.EVENT_RECORD, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.CONTEXT_RECORD_EVENT, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
    }

    @Test
    void theStreamOfTheFreeEndsWhileTheOtherIsCaptured() {
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, other, CaptureMode.GLOBAL)) {
            memory.free(block, stream);
            memory.streamClosing(DEVICE, stream);
        }
    }

    @Test
    void itIsFreedOnTheThreadsOwnStreamWhileTheOtherIsCaptured() {
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, other, CaptureMode.GLOBAL)) {
            memory.free(block, Streams.PER_THREAD_DEFAULT);
        }
    }

    @Test
    void theStreamOfTheFreeEndsWhileTheDriverGivesNoFence() {
        memory.free(block, stream);
        driverGivesNoFence();
        memory.streamClosing(DEVICE, stream);
    }

    @Test
    void theOtherStreamEndsWhileTheDriverGivesNoFence() {
        memory.free(block, stream);
        driverGivesNoFence();
        memory.streamClosing(DEVICE, other);
        gpu.faults().clear();
        async.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
    }

    @Test
    void theOtherStreamEndsBeforeTheFreeWhileTheDriverGivesNoFence() {
        driverGivesNoFence();
        memory.streamClosing(DEVICE, other);
        gpu.faults().clear();
        memory.free(block, stream);
    }

    @Test
    void trimmingDoesNotWaitBesideACapture() {
        long third = gpu.streams().create(DEVICE);
        memory.free(block, stream);
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, third, CaptureMode.GLOBAL)) {
            TrimResult trimmed = async.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            assertThat(trimmed.left()).extracting(TrimResult.Left::reason).contains(Reason.USED_BY_OTHER_STREAM);
        }
    }

    @Test
    void outOfMemoryIsToldBesideACapture() {
        long third = gpu.streams().create(DEVICE);
        memory.free(block, stream);
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, third, CaptureMode.GLOBAL)) {
            assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                    .isThrownBy(() -> async.allocate(8192 * MIB, DEVICE, stream))
                    .withMessageContaining("since a capture runs");
        }
    }
}
