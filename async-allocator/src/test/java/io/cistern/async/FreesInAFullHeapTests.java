package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.mockito.AdditionalAnswers.delegatesTo;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doReturn;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.Streams;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.Segment;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.TrimMode;
import java.util.Collections;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Frees in which a call of the driver fails for lack of Java heap. The block's record is gone by then, so it is freed
/// later.
final class FreesInAFullHeapTests {
    private static final int DEVICE = 0;
    private static final long BYTES = 4 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final MemoryPools pools = mock(MemoryPools.class, delegatesTo(gpu.pools()));
    private final CudaDriver driver = mock(CudaDriver.class, delegatesTo(gpu));
    private final StreamOrder order = mock(StreamOrder.class);
    private final long stream = gpu.streams().create(DEVICE);
    private final long other = gpu.streams().create(DEVICE);
    private final AsyncAllocator async;
    private final GraphAllocations ofGraphs;

    FreesInAFullHeapTests() {
        doReturn(pools).when(driver).pools();
        async = AsyncFixture.async(driver, 1, AsyncOptions.USUAL, order);
        ofGraphs = new GraphAllocations(driver);
    }

    @AfterEach
    void nothingIsLost() {
        async.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(async.reservedBytes(DEVICE)).hasValue(0);
        async.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private void nextFreeFails() {
        nextFreesFail(1);
    }

    private void nextFreesFail(int times) {
        doThrow(Collections.nCopies(times, new OutOfMemoryError("in a test")).toArray(Throwable[]::new))
                .doAnswer(delegatesTo(gpu.pools()))
                .when(pools)
                .free(anyInt(), anyLong(), anyLong());
    }

    @Test
    void anOrdinaryFreeIsMadeWithTheNextCall() {
        long block = async.allocate(BYTES, DEVICE, stream);
        nextFreeFails();
        async.free(block, BYTES, DEVICE, stream);
        assertThat(async.allocate(BYTES, DEVICE, stream)).isEqualTo(block);
        async.free(block, BYTES, DEVICE, stream);
    }

    @Test
    void oneThatFailsAgainIsMadeWithALaterCall() {
        long block = async.allocate(BYTES, DEVICE, stream);
        nextFreesFail(2);
        async.free(block, BYTES, DEVICE, stream);
        long next = async.allocate(BYTES, DEVICE, stream);
        assertThat(async.allocate(BYTES, DEVICE, stream)).isEqualTo(block);
        async.free(block, BYTES, DEVICE, stream);
        async.free(next, BYTES, DEVICE, stream);
    }

    @Test
    void soIsOneBesideBlocksOfSeveralStreams() {
        long used = async.allocate(BYTES, DEVICE, stream);
        async.recordUse(used, DEVICE, other);
        anOrdinaryFreeIsMadeWithTheNextCall();
        async.free(used, BYTES, DEVICE, stream);
    }

    @Test
    void soIsOneThatWaitedForAnotherStream() {
        long block = async.allocate(BYTES, DEVICE, stream);
        async.recordUse(block, DEVICE, other);
        when(order.record(DEVICE, other)).thenReturn(1L);
        async.free(block, BYTES, DEVICE, stream);
        when(order.passed(DEVICE, 1)).thenReturn(true);
        nextFreeFails();
        async.trim(DEVICE, Long.MAX_VALUE);
        assertThat(async.statistics(DEVICE)).containsEntry("pool.waiting_bytes", 0L);
    }

    @Test
    void aWaitOnTheStreamOfTheFreeIsReplacedByItsEnd() {
        long block = async.allocate(64 << 20, DEVICE, stream);
        async.recordUse(block, DEVICE, other);
        when(order.record(DEVICE, other)).thenReturn(1L);
        when(order.record(DEVICE, stream)).thenReturn(2L);
        async.free(block, 64 << 20, DEVICE, stream);
        doThrow(new OutOfMemoryError("in a test")).when(order).await(DEVICE, stream, 1L);
        async.streamClosing(DEVICE, stream);
        assertThat(async.statistics(DEVICE)).containsEntry("pool.waiting_bytes", 64L << 20);
        when(order.passed(DEVICE, 1)).thenReturn(true);
        when(order.passed(DEVICE, 2)).thenReturn(true);
        async.trim(DEVICE, Long.MAX_VALUE);
        assertThat(async.statistics(DEVICE)).containsEntry("pool.waiting_bytes", 0L);
    }

    /// On a virtual thread the wait after the free needs Java objects.
    @Test
    void aRangeForAnotherAllocatorIsFreeAlthoughTheWaitFails() {
        Streams streams = mock(Streams.class, delegatesTo(gpu.streams()));
        doReturn(streams).when(driver).streams();
        DriverPoolSource source =
                new DriverPoolSource(driver, AsyncFixture.async(driver, 1, AsyncOptions.USUAL, order), 1);
        Segment segment = source.acquire(64 << 20, 256, DEVICE);
        doThrow(new OutOfMemoryError("in a test")).when(streams).synchronize(anyInt(), anyLong());
        source.release(segment);
        assertThatExceptionOfType(CudaException.class)
                .as("the range is gone")
                .isThrownBy(() -> gpu.memory().range(DEVICE, segment.address()));
        source.close();
    }

    @Test
    void aBlockOfAGraphIsFreedWhenTheGraphIsGone() {
        gpu.graphs().beginCapture(DEVICE, stream, CaptureMode.RELAXED);
        long block = ofGraphs.allocate(BYTES, DEVICE, stream);
        nextFreeFails();
        ofGraphs.free(block, BYTES, DEVICE, stream);
        long graph = gpu.graphs().endCapture(DEVICE, stream);
        long executable = gpu.graphs().instantiate(DEVICE, graph, true);
        gpu.graphs().launch(DEVICE, executable, stream);
        gpu.streams().synchronize(DEVICE, stream);
        gpu.graphs().destroyExecutable(DEVICE, executable);
        gpu.graphs().destroy(DEVICE, graph);
        ofGraphs.graphsGone();
        gpu.devices().synchronize(DEVICE);
        assertThat(gpu.graphs().memory(DEVICE, GraphMemoryAttribute.USED_CURRENT))
                .isZero();
    }
}
