package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.caching.CachingProvider;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.graph.GraphCapture;
import io.cistern.nccl.internal.symmetric.SymmetricAllocator;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import io.cistern.testkit.StreamLatch;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Who comes after whom on the segment: beside captures, and where the driver gives no fence.
class SymmetricOrderTests {
    private static final long MIB = 1L << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(
                    List.of(new CachingProvider(), new SymmetricProvider()), List.of(new NcclSourceProvider())))
            .open();
    private final long stream = gpu.streams().create(0);
    private final long other = gpu.streams().create(0);
    private MemoryPool pool;

    @BeforeEach
    void open() {
        pool = memory.pools().open("symmetric:bytes=4MiB");
    }

    @AfterEach
    void noFenceIsLeft() {
        pool.close();
        memory.close();
        assertThat(gpu.calls().of(DriverCall.EVENT_CREATE))
                .isEqualTo(gpu.calls().of(DriverCall.EVENT_DESTROY));
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private long base() {
        return pool.extension(SymmetricAllocator.class).orElseThrow().segment(0).address();
    }

    private boolean liesOnTheSegment(long block) {
        return block >= base() && block < base() + 4 * MIB;
    }

    /// Has the lowest offset free, and last used on the stream.
    ///
    /// @return a block that lies behind it
    private long useFirstMibLast() {
        long first = pool.allocate(MIB, 0, stream);
        long behind = pool.allocate(MIB, 0, other);
        assertThat(first).isEqualTo(base());
        memory.free(first, stream);
        return behind;
    }

    /// Each free on it records a fence, as other threads can't name it.
    @Test
    void theDefaultStreamOfAThreadKeepsFewFences() {
        for (int i = 0; i < 500; i++) {
            memory.free(pool.allocate(MIB, 0, Streams.PER_THREAD_DEFAULT), Streams.PER_THREAD_DEFAULT);
        }
        assertThat(gpu.heldObjects().get("events")).isLessThan(100);
    }

    @Test
    void aCaptureIsServedFromElsewhereIfItsStreamUsedTheSegmentLast() {
        memory.free(pool.allocate(MIB, 0, stream), stream);
        try (GraphCapture _ = GraphCapture.begin(memory, 0, stream, CaptureMode.GLOBAL)) {
            long block = pool.allocate(MIB, 0, stream);
            assertThat(liesOnTheSegment(block)).isFalse();
            memory.free(block, stream);
        }
        long block = pool.allocate(MIB, 0, other);
        assertThat(block).isEqualTo(base());
        memory.free(block, other);
    }

    @Test
    void besideACaptureOthersGoPastWhatItsStreamUsedLast() {
        long behind = useFirstMibLast();
        try (GraphCapture _ = GraphCapture.begin(memory, 0, stream, CaptureMode.GLOBAL)) {
            long block = pool.allocate(MIB, 0, other);
            assertThat(block).isEqualTo(base() + 2 * MIB);
            memory.free(block, other);
        }
        memory.free(behind, other);
    }

    @Test
    void looksForIdleMemoryLeaveNoFences() {
        try (StreamLatch latch = new StreamLatch(gpu, 0)) {
            long block = pool.allocate(MIB, 0, stream);
            latch.hold(stream);
            memory.free(block, stream);
            for (int i = 0; i < 100; i++) {
                assertThat(pool.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                        .isZero();
            }
            assertThat(gpu.calls().of(DriverCall.EVENT_CREATE)).isLessThan(5);
        }
        assertThat(pool.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes()).isEqualTo(4 * MIB);
    }

    @Test
    void aSegmentThatGoesLeavesNoFenceOfStreamsThatEnded() {
        try (StreamLatch latch = new StreamLatch(gpu, 0)) {
            long block = pool.allocate(MIB, 0, stream);
            latch.hold(stream);
            memory.free(block, stream);
            memory.streamClosing(0, stream);
            gpu.streams().destroy(0, stream);
        }
        assertThat(pool.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes()).isEqualTo(4 * MIB);
    }

    @Test
    void whatAStreamUsedThatEndedWithoutAFenceIsHadBehindAllStreams() {
        try (StreamLatch latch = new StreamLatch(gpu, 0)) {
            long behind = useFirstMibLast();
            latch.hold(stream);
            memory.free(pool.allocate(MIB, 0, stream), stream);
            gpu.faults().failOn(DriverCall.EVENT_RECORD, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
            gpu.faults().failOn(DriverCall.CONTEXT_RECORD_EVENT, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
            gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
            memory.streamClosing(0, stream);
            gpu.faults().clear();
            long block = pool.allocate(MIB, 0, other);
            assertThat(block).isEqualTo(base());
            assertThat(gpu.streams().isIdle(0, other))
                    .as("waits for the stream")
                    .isFalse();
            memory.free(block, other);
            memory.free(behind, other);
        }
        gpu.streams().destroy(0, stream);
    }

    @Test
    void withoutAFenceABlockIsReusedBehindAllStreams() {
        long behind = useFirstMibLast();
        gpu.faults().failOn(DriverCall.EVENT_RECORD, 0, 1, CudaResult.INVALID_HANDLE);
        long block = pool.allocate(MIB, 0, other);
        assertThat(block).isEqualTo(base());
        assertThat(gpu.calls().of(DriverCall.CONTEXT_RECORD_EVENT)).isOne();
        memory.free(block, other);
        memory.free(behind, other);
    }

    /// Calls of other threads may come just after the close.
    @Test
    void afterTheCloseItHasNothingToGiveBackAndKeepsNoEvent() {
        DeviceAllocator allocator = pool.extension(SymmetricAllocator.class).orElseThrow();
        memory.free(pool.allocate(MIB, 0, stream), stream);
        gpu.keepBusy(0, stream, 1_000_000); // so that it stays until the close
        pool.close();
        allocator.streamClosing(0, other);
        assertThat(allocator.trim(0, 0)).isZero();
    }
}
