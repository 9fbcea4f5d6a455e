package io.cistern.internal.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.verifyNoInteractions;
import static org.mockito.Mockito.when;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.StreamOrder;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Points in a graph that is being captured: whether the work before one comes before what another stream does next.
class CaptureOrderTests {
    private static final long BYTES = 4096;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final StreamOrder others = mock(StreamOrder.class);
    private boolean isUnderWay = true;
    private final CaptureOrder order = new CaptureOrder(gpu, others, _ -> isUnderWay);
    private final long memory = gpu.memory().allocate(0, BYTES);
    private final long stream = gpu.streams().create(0);
    private final long sibling = gpu.streams().create(0);
    private final long event = gpu.events().create(0);

    @BeforeEach
    void begin() {
        gpu.graphs().beginCapture(0, stream, CaptureMode.RELAXED);
        work(stream);
    }

    @AfterEach
    void close() {
        join(stream, sibling);
        gpu.graphs().destroy(0, gpu.graphs().endCapture(0, stream));
        gpu.events().destroy(0, event);
        gpu.memory().free(0, memory);
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private void work(long on) {
        gpu.copies().fillBytes(0, memory, (byte) 1, BYTES, on);
    }

    /// Makes a stream wait for another one; if it is not captured yet, it joins the capture.
    private void join(long waiting, long awaited) {
        if (gpu.graphs().captureStatus(0, awaited) != CaptureStatus.NONE) {
            gpu.events().record(0, event, awaited);
            gpu.streams().await(0, waiting, event);
        }
    }

    private boolean passedFor(long asking, long fence) {
        order.asksFor(asking);
        try {
            return order.passed(0, fence);
        } finally {
            order.asksNoMore();
        }
    }

    @Test
    void aPointHasPassedForStreamsThatFollowIt() {
        join(sibling, stream);
        work(stream);
        long fence = order.record(0, stream);
        assertThat(passedFor(stream, fence)).as("its own stream").isTrue();
        assertThat(passedFor(sibling, fence)).as("a stream beside it").isFalse();
        join(sibling, stream);
        assertThat(passedFor(sibling, fence)).as("after a wait").isTrue();
        for (int i = 0; i < 5; i++) {
            work(sibling);
        }
        assertThat(passedFor(sibling, fence)).as("some nodes later").isTrue();
        verifyNoInteractions(others);
    }

    @Test
    void aPointAfterSeveralNodesHasPassedOnceAllDid() {
        join(sibling, stream);
        work(stream);
        work(sibling);
        long first = order.record(0, sibling);
        join(stream, sibling);
        long both = order.record(0, stream);
        assertThat(passedFor(sibling, both)).as("after one of two").isFalse();
        assertThat(passedFor(stream, first)).isTrue();
        work(stream);
        assertThat(passedFor(stream, both)).isTrue();
        join(sibling, stream);
        assertThat(passedFor(sibling, both)).isTrue();
    }

    @Test
    void withoutAnAskerAPointPassesWithItsCapture() {
        long fence = order.record(0, stream);
        assertThat(order.passed(0, fence)).isFalse();
        assertThat(order.awaitable(0, fence)).isFalse();
        assertThatExceptionOfType(CudaException.class).isThrownBy(() -> order.await(0, stream, fence));
        assertThatExceptionOfType(CudaException.class).isThrownBy(() -> order.synchronize(0, fence));
        isUnderWay = false;
        assertThat(order.passed(0, fence)).isTrue();
        assertThat(order.awaitable(0, fence)).isTrue();
        order.await(0, stream, fence);
        order.synchronize(0, fence);
        verifyNoInteractions(others);
    }

    @Test
    void aPointHasNotPassedForAStreamOfAnotherCapture() {
        long fence = order.record(0, stream);
        gpu.graphs().beginCapture(0, sibling, CaptureMode.RELAXED);
        assertThat(passedFor(sibling, fence)).isFalse();
        gpu.graphs().destroy(0, gpu.graphs().endCapture(0, sibling));
        assertThat(passedFor(sibling, fence)).as("not captured").isFalse();
    }

    @Test
    void aPointFarBeforeTheStreamWaitsForTheCapture() {
        join(sibling, stream);
        long fence = order.record(0, stream);
        for (int i = 0; i < 1000; i++) {
            work(sibling);
        }
        assertThat(passedFor(sibling, fence)).isTrue();
        for (int i = 0; i < 1100; i++) {
            work(sibling);
        }
        assertThat(passedFor(sibling, fence)).isFalse();
    }

    @Test
    void whatTheDriverCanNotTellHasNotPassed() {
        join(sibling, stream);
        long fence = order.record(0, stream);
        work(sibling);
        gpu.faults().failOn(DriverCall.GRAPH_NODE_GET_DEPENDENCIES, 0, 1, CudaResult.UNKNOWN);
        assertThat(passedFor(sibling, fence)).isFalse();
        assertThat(passedFor(sibling, fence)).isTrue();
    }

    @Test
    void aReleasedPointIsForgotten() {
        long fence = order.record(0, stream);
        order.release(0, fence);
        assertThat(order.passed(0, fence)).isTrue();
        verifyNoInteractions(others);
    }

    @Test
    void fencesOnOtherStreamsAreOrdinaryOnes() {
        when(others.record(0, sibling)).thenReturn(17L);
        when(others.recordAll(0)).thenReturn(18L);
        when(others.passed(0, 17)).thenReturn(true, false);
        when(others.awaitable(0, 17)).thenReturn(true, false);
        assertThat(order.record(0, sibling)).isEqualTo(17);
        assertThat(order.recordAll(0)).isEqualTo(18);
        assertThat(order.passed(0, 17)).isTrue();
        assertThat(order.passed(0, 17)).isFalse();
        assertThat(order.awaitable(0, 17)).isTrue();
        assertThat(order.awaitable(0, 17)).isFalse();
        order.await(0, stream, 17);
        order.synchronize(0, 17);
        order.release(0, 17);
        verify(others).await(0, stream, 17);
        verify(others).synchronize(0, 17);
        verify(others).release(0, 17);
    }
}
