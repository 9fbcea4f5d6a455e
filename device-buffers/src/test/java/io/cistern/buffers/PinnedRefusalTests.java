package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Pinned memory while the driver refuses calls: what a stream may still use goes to nobody, and nothing is lost.
class PinnedRefusalTests {
    private static final int DEVICE = 0;
    private static final int BYTES = 5000;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new DriverSource.Linear())))
            .open();
    private final PinnedMemory pinned = PinnedMemory.of(memory);
    private final long stream = gpu.streams().create(DEVICE);
    private final MemorySegment latch = gpu.memory().allocateHost(DEVICE, Integer.BYTES);

    private void holdStream() {
        latch.set(ValueLayout.JAVA_INT, 0, 0);
        MemoryKernels.load(gpu, DEVICE).latch(latch.address(), stream);
    }

    private void letStreamFinish() {
        latch.set(ValueLayout.JAVA_INT, 0, 1);
        gpu.streams().synchronize(DEVICE, stream);
    }

    @AfterEach
    void nothingIsLost() {
        gpu.faults().clear();
        letStreamFinish();
        memory.close();
        assertThat(pinnedPieces()).isZero();
        assertThat(calls(DriverCall.EVENT_DESTROY)).isEqualTo(calls(DriverCall.EVENT_CREATE));
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private long calls(DriverCall call) {
        return gpu.calls().of(call);
    }

    private long pinnedPieces() {
        return pinned.statistics().get("allocations.current");
    }

    private void refuse(DriverCall call, int times) {
        gpu.faults().failOn(call, 0, times, CudaResult.UNKNOWN);
    }

    @Test
    void aBufferWhoseStreamCanNeitherBeMarkedNorAwaitedGoesToNobody() {
        holdStream();
        PinnedBuffer used = pinned.allocate(BYTES);
        used.recordUse(DEVICE, stream);
        refuse(DriverCall.EVENT_RECORD, Integer.MAX_VALUE);
        refuse(DriverCall.CONTEXT_RECORD_EVENT, Integer.MAX_VALUE);
        refuse(DriverCall.CONTEXT_SYNCHRONIZE, Integer.MAX_VALUE);
        long address = used.segment().address();
        used.close();
        try (PinnedBuffer whileRefusing = pinned.allocate(BYTES)) {
            assertThat(whileRefusing.segment().address()).isNotEqualTo(address);
            gpu.faults().clear();
            try (PinnedBuffer whileInUse = pinned.allocate(BYTES)) {
                assertThat(whileInUse.segment().address()).isNotEqualTo(address);
                letStreamFinish();
                try (PinnedBuffer last = pinned.allocate(BYTES)) {
                    assertThat(last.segment().address()).isEqualTo(address);
                }
            }
        }
    }

    @Test
    void whatCanNotBeUnpinnedNowIsUnpinnedLater() {
        PinnedBuffer first = pinned.allocate(BYTES);
        PinnedBuffer second = pinned.allocate(BYTES);
        first.close();
        second.close();
        refuse(DriverCall.MEM_FREE_HOST, 1);
        assertThatExceptionOfType(CudaException.class).isThrownBy(pinned::trim);
        assertThat(pinnedPieces()).isOne();
        assertThat(pinned.trim()).isEqualTo(8192);
    }

    @Test
    void aBufferThatIsClosedAfterTheMemoryIsUnpinnedWithTheNextOne() {
        PinnedBuffer first = pinned.allocate(BYTES);
        PinnedBuffer second = pinned.allocate(BYTES);
        memory.close();
        refuse(DriverCall.MEM_FREE_HOST, DeadContext.MOST_TRIES);
        first.close();
        assertThat(pinnedPieces()).isEqualTo(2);
        second.close();
        assertThat(pinnedPieces()).isZero();
    }

    @Test
    void theEndUnpinsWhatTheDriverRefusesOnce() {
        PinnedBuffer used = pinned.allocate(BYTES);
        used.recordUse(DEVICE, stream);
        used.close();
        refuse(DriverCall.MEM_FREE_HOST, 1);
        refuse(DriverCall.EVENT_QUERY, 8);
        memory.close();
        assertThat(pinnedPieces()).isZero();
    }

    @Test
    void aPieceForCopiesIsGivenBackThoughTheDriverDestroysNoEvent() {
        copyTwice();
        refuse(DriverCall.EVENT_DESTROY, Integer.MAX_VALUE);
        pinned.trim();
        assertThat(pinnedPieces()).isZero();
    }

    @Test
    void aCopyIsMadeThoughTheDriverMarksNoEndOfIt() {
        refuse(DriverCall.EVENT_RECORD, Integer.MAX_VALUE);
        copyTwice();
        pinned.trim();
        assertThat(pinnedPieces()).isZero();
    }

    @Test
    void theEndGivesAllPiecesBackThoughOneCanNotBeWaitedFor() {
        copyTwice();
        refuse(DriverCall.EVENT_QUERY, 1);
        refuse(DriverCall.EVENT_SYNCHRONIZE, 1);
        memory.close();
        assertThat(pinnedPieces()).isZero();
    }

    /// With a piece for each copy, as the first is not over when the second is enqueued.
    private void copyTwice() {
        memory.setCurrent("direct");
        holdStream();
        MemorySegment array = MemorySegment.ofArray(new byte[BYTES]);
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, BYTES, DEVICE, stream);
        buffer.copyFrom(array, stream, CopyMode.NON_BLOCKING);
        buffer.copyFrom(array, stream, CopyMode.NON_BLOCKING);
        assertThat(pinnedPieces()).isEqualTo(2);
        letStreamFinish();
        buffer.close();
    }
}
