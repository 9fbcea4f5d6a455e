package io.cistern.internal.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.AdditionalAnswers.delegatesTo;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.doReturn;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Events;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.simulated.SimulatedGpu;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class EventOrderTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final EventOrder order = new EventOrder(gpu, 2);
    private final long stream = gpu.streams().create(0);
    private final long other = gpu.streams().create(0);
    private int refusedDestroys;

    @AfterEach
    void noEventIsLeft() {
        order.close();
        assertThat(calls(DriverCall.EVENT_DESTROY)).isEqualTo(calls(DriverCall.EVENT_CREATE) + refusedDestroys);
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private long calls(DriverCall call) {
        return gpu.calls().of(call);
    }

    @Test
    void theEventOfAReleasedFenceIsRecordedAgain() {
        for (int i = 0; i < 10; i++) {
            order.release(0, order.record(0, stream));
        }
        assertThat(calls(DriverCall.EVENT_CREATE)).isOne();
        assertThat(calls(DriverCall.EVENT_RECORD)).isEqualTo(10);
    }

    @Test
    void closingGoesOnPastAnEventThatTheDriverKeeps() {
        long first = order.record(0, stream);
        long second = order.record(0, other);
        order.release(0, first);
        order.release(0, second);
        gpu.faults().failOn(DriverCall.EVENT_DESTROY, 1, 7, CudaResult.UNKNOWN);
        assertThatThrownBy(order::close).isInstanceOf(CudaException.class);
        assertThat(gpu.heldObjects()).containsEntry("events", 1L);
        refusedDestroys = 7;
    }

    @Test
    void anEventThatTheDriverDoesNotDestroyIsDestroyedWithTheNext() {
        long[] fences = new long[4];
        for (int i = 0; i < fences.length; i++) {
            fences[i] = order.record(0, stream);
        }
        gpu.faults().failOn(DriverCall.EVENT_DESTROY, 0, 1, CudaResult.UNKNOWN);
        for (long fence : fences) {
            order.release(0, fence);
        }
        assertThat(calls(DriverCall.EVENT_DESTROY)).as("two are kept").isEqualTo(3);
        refusedDestroys = 1;
    }

    @Test
    void anEventThatTheDriverNeitherRecordsNorDestroysHindersNoFence() {
        gpu.faults().failOn(DriverCall.EVENT_RECORD, 0, 1, CudaResult.OUT_OF_MEMORY);
        gpu.faults().failOn(DriverCall.EVENT_DESTROY, 0, 1, CudaResult.UNKNOWN);
        long fence = order.record(0, stream);
        assertThat(calls(DriverCall.CONTEXT_RECORD_EVENT)).isOne();
        assertThat(order.passed(0, fence)).isTrue();
        order.release(0, fence);
        refusedDestroys = 1;
    }

    private void refuse(DriverCall... calls) {
        for (DriverCall call : calls) {
            gpu.faults().failOn(call, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        }
    }

    @Test
    void withoutAFenceOverAllStreamsTheHostWaitsForThem() {
        long memory = gpu.memory().allocate(0, 1 << 20);
        gpu.copies().fillBytes(0, memory, (byte) 1, 1 << 20, stream);
        refuse(DriverCall.EVENT_RECORD, DriverCall.CONTEXT_RECORD_EVENT);
        long fence = order.record(0, stream);
        assertThat(gpu.streams().isIdle(0, stream)).isTrue();
        assertThat(fence).isZero();
        assertThat(order.passed(0, fence)).isTrue();
        order.await(0, other, fence);
        order.synchronize(0, fence);
        order.release(0, fence);
        assertThat(calls(DriverCall.CONTEXT_SYNCHRONIZE)).isOne();
        gpu.memory().free(0, memory);
    }

    @Test
    void aFenceThatTheDriverOwesPassesOnceItAnswersAgain() {
        MemorySegment flag = gpu.memory().allocateHost(0, Integer.BYTES);
        try (MemoryKernels kernels = MemoryKernels.load(gpu, 0)) {
            kernels.latch(flag.address(), stream);
            refuse(DriverCall.EVENT_RECORD, DriverCall.CONTEXT_RECORD_EVENT, DriverCall.CONTEXT_SYNCHRONIZE);
            long first = order.record(0, stream);
            assertThat(order.passed(0, first)).isFalse();
            assertThat(order.awaitable(0, first)).isFalse();
            assertThatThrownBy(() -> order.await(0, other, first)).isInstanceOf(CudaException.class);
            assertThatThrownBy(() -> order.synchronize(0, first)).isInstanceOf(CudaException.class);
            gpu.faults().clear();
            assertThat(order.passed(0, first)).as("behind the stream").isFalse();
            assertThat(order.awaitable(0, first)).isTrue();
            order.await(0, other, first);
            assertThat(gpu.streams().isIdle(0, other)).isFalse();
            refuse(DriverCall.EVENT_RECORD, DriverCall.CONTEXT_RECORD_EVENT, DriverCall.CONTEXT_SYNCHRONIZE);
            long second = order.record(0, stream);
            gpu.faults().clear();
            flag.set(ValueLayout.JAVA_INT, 0, 1);
            gpu.devices().synchronize(0);
            assertThat(order.passed(0, second)).isTrue();
            assertThat(order.passed(0, first)).isTrue();
            order.synchronize(0, first);
            order.release(0, first);
            order.release(0, second);
        }
        gpu.memory().freeHost(0, flag);
    }

    /// A free has no way back.
    @Test
    void inAFullJavaHeapAFenceIsOwed() {
        Events events = mock(Events.class, delegatesTo(gpu.events()));
        CudaDriver driver = mock(CudaDriver.class, delegatesTo(gpu));
        doReturn(events).when(driver).events();
        doThrow(new OutOfMemoryError("in a test"))
                .doAnswer(delegatesTo(gpu.events()))
                .when(events)
                .record(anyInt(), anyLong(), anyLong());
        doThrow(new OutOfMemoryError("in a test"))
                .doAnswer(delegatesTo(gpu.events()))
                .when(events)
                .recordAll(anyInt(), anyLong());
        doThrow(new OutOfMemoryError("in a test"))
                .doAnswer(delegatesTo(gpu.events()))
                .when(events)
                .hasPassed(anyInt(), anyLong());
        try (EventOrder full = new EventOrder(driver, 0)) {
            long fence = full.record(0, stream);
            long all = full.recordAll(0);
            assertThat(all).isNegative();
            assertThat(full.passed(0, fence)).as("not told").isFalse();
            assertThat(full.passed(0, fence)).isTrue();
            assertThat(full.passed(0, all)).isTrue();
            full.release(0, fence);
        }
        assertThat(calls(DriverCall.CONTEXT_RECORD_EVENT)).isOne();
    }

    /// The event may be a part of the capture.
    @Test
    void aCaptureThatBeginsMeanwhileGetsNoEvent() {
        long blocking = gpu.streams().create(0, false, 0);
        Events events = mock(Events.class, delegatesTo(gpu.events()));
        CudaDriver driver = mock(CudaDriver.class, delegatesTo(gpu));
        doReturn(events).when(driver).events();
        doAnswer(call -> {
                    gpu.graphs().shelter(0);
                    gpu.graphs().beginCapture(0, blocking, CaptureMode.RELAXED);
                    gpu.events().record(0, call.getArgument(1), blocking);
                    return null;
                })
                .when(events)
                .record(anyInt(), anyLong(), anyLong());
        try (EventOrder racing = new EventOrder(driver, 8)) {
            long fence = racing.record(0, blocking);
            assertThat(fence).isNegative();
            assertThat(calls(DriverCall.EVENT_DESTROY)).isOne();
            assertThat(racing.recordable(0, 0))
                    .as("a stream whose state the driver can't tell")
                    .isFalse();
            gpu.graphs().destroy(0, gpu.graphs().endCapture(0, blocking));
            gpu.graphs().unshelter(0);
            assertThat(racing.recordable(0, 0)).isTrue();
            assertThat(racing.passed(0, fence)).isTrue();
        }
    }

    @Test
    void anOwedFencePassesOnceTheHostMayWait() {
        gpu.keepBusy(0, stream, 1_000_000);
        refuse(DriverCall.EVENT_RECORD, DriverCall.CONTEXT_RECORD_EVENT, DriverCall.CONTEXT_SYNCHRONIZE);
        long owed = order.record(0, stream);
        assertThat(order.passed(0, owed)).isFalse();
        gpu.faults().clear();
        refuse(DriverCall.CONTEXT_RECORD_EVENT);
        assertThat(order.passed(0, owed)).isTrue();
        assertThat(gpu.streams().isIdle(0, stream)).isTrue();
    }

    @Test
    void inADeadContextAllHasPassed() {
        long memory = gpu.memory().allocate(0, 1 << 20);
        gpu.copies().fillBytes(0, memory, (byte) 1, 1 << 20, stream);
        long before = order.record(0, stream);
        gpu.faults().failOn(DriverCall.EVENT_RECORD, 0, Integer.MAX_VALUE, CudaResult.ILLEGAL_ADDRESS);
        gpu.faults().failOn(DriverCall.EVENT_QUERY, 0, Integer.MAX_VALUE, CudaResult.ILLEGAL_ADDRESS);
        gpu.faults().failOn(DriverCall.CONTEXT_RECORD_EVENT, 0, Integer.MAX_VALUE, CudaResult.ILLEGAL_ADDRESS);
        gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, Integer.MAX_VALUE, CudaResult.ILLEGAL_ADDRESS);
        assertThat(order.passed(0, order.record(0, stream))).isTrue();
        assertThat(order.passed(0, before)).isTrue();
        gpu.faults().clear();
        order.release(0, before);
        gpu.devices().synchronize(0);
        gpu.memory().free(0, memory);
    }

    @Test
    void aStreamHasFinishedOnceItsWorkHas() {
        long memory = gpu.memory().allocate(0, 1 << 20);
        gpu.copies().fillBytes(0, memory, (byte) 1, 1 << 20, stream);
        assertThat(order.finished(0, stream)).isFalse();
        gpu.devices().synchronize(0);
        assertThat(order.finished(0, stream)).isTrue();
        assertThat(calls(DriverCall.STREAM_QUERY)).isEqualTo(2);
        gpu.memory().free(0, memory);
    }

    @Test
    void whatTheDriverCanNotTellIsNotSo() {
        long fence = order.record(0, stream);
        refuse(DriverCall.STREAM_QUERY, DriverCall.STREAM_GET_FLAGS, DriverCall.EVENT_QUERY);
        assertThat(order.finished(0, stream)).isFalse();
        assertThat(order.independent(0, stream)).isFalse();
        assertThat(order.passed(0, fence)).isFalse();
        gpu.faults().clear();
        order.release(0, fence);
    }

    @Test
    void aFenceInACapturePassesAfterIt() {
        long memory = gpu.memory().allocate(0, 1 << 20);
        gpu.graphs().shelter(0);
        gpu.graphs().beginCapture(0, stream, CaptureMode.RELAXED);
        assertThat(order.recordable(0, stream)).isFalse();
        assertThat(order.recordable(0, other)).isTrue();
        gpu.copies().fillBytes(0, memory, (byte) 1, 1 << 20, stream);
        long inside = order.record(0, stream);
        long all = order.recordAll(0);
        assertThat(inside).isNegative();
        assertThat(all).isNegative();
        assertThat(order.passed(0, inside)).isFalse();
        assertThat(order.awaitable(0, inside)).isFalse();
        assertThat(order.finished(0, other))
                .as("nobody asks the driver meanwhile")
                .isFalse();
        long outside = order.record(0, other);
        assertThat(outside).isPositive();
        gpu.graphs().destroy(0, gpu.graphs().endCapture(0, stream));
        gpu.graphs().unshelter(0);
        assertThat(order.awaitable(0, inside)).isTrue();
        assertThat(order.passed(0, inside)).isTrue();
        assertThat(order.passed(0, all)).isTrue();
        order.release(0, outside);
        gpu.memory().free(0, memory);
    }

    @Test
    void closingDestroysTheEventOfAnOwedFence() {
        gpu.keepBusy(0, stream, 1_000_000);
        refuse(DriverCall.EVENT_RECORD, DriverCall.CONTEXT_RECORD_EVENT, DriverCall.CONTEXT_SYNCHRONIZE);
        long owed = order.record(0, stream);
        gpu.faults().clear();
        assertThat(order.passed(0, owed)).isFalse();
    }

    @Test
    void streamsThatWaitForTheLegacyOneAreNotIndependent() {
        assertThat(order.independent(0, stream)).isTrue();
        assertThat(order.independent(0, 0)).isFalse();
        assertThat(order.independent(0, 1)).isFalse();
        assertThat(order.independent(0, 2)).isFalse();
        assertThat(order.independent(0, gpu.streams().create(0, false, 0))).isFalse();
    }

    @Test
    void fencesThatAreHeldAreDifferentEvents() {
        long first = order.record(0, stream);
        long second = order.record(0, other);
        assertThat(second).isNotEqualTo(first);
        order.release(0, first);
        order.release(0, second);
    }

    @Test
    void aStreamWaitsForWhatTheEventHadRecordedThen() {
        long memory = gpu.memory().allocate(0, 1 << 20);
        gpu.copies().fillBytes(0, memory, (byte) 1, 1 << 20, stream);
        long fence = order.record(0, stream);
        order.await(0, other, fence);
        order.release(0, fence);
        assertThat(order.record(0, other)).isEqualTo(fence);
        gpu.copies().fillBytes(0, memory, (byte) 2, 1 << 20, other);
        gpu.devices().synchronize(0);
        order.release(0, fence);
        gpu.memory().free(0, memory);
    }

    @Test
    void anEventThatStoodForAllStreamsStandsForOneAfterwards() {
        order.release(0, order.recordAll(0));
        long memory = gpu.memory().allocate(0, 1 << 20);
        gpu.copies().fillBytes(0, memory, (byte) 1, 1 << 20, other);
        long fence = order.record(0, stream);
        assertThat(order.passed(0, fence)).as("the other stream is busy").isTrue();
        order.release(0, fence);
        gpu.devices().synchronize(0);
        gpu.memory().free(0, memory);
    }

    @Test
    void noMoreThanSoManyAreKept() {
        long[] fences = new long[5];
        for (int i = 0; i < fences.length; i++) {
            fences[i] = order.record(0, stream);
        }
        for (long fence : fences) {
            order.release(0, fence);
        }
        assertThat(calls(DriverCall.EVENT_DESTROY)).isEqualTo(3);
    }

    @Test
    void afterTheEndNothingIsKept() {
        long fence = order.record(0, stream);
        order.close();
        order.release(0, fence);
        assertThat(calls(DriverCall.EVENT_DESTROY)).isOne();
    }
}
