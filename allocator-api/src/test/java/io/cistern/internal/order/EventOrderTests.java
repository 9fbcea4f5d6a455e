package io.cistern.internal.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
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
        gpu.faults().failOn(DriverCall.EVENT_DESTROY, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(order::close).isInstanceOf(CudaException.class);
        assertThat(calls(DriverCall.EVENT_DESTROY)).isEqualTo(2);
        refusedDestroys = 1;
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
    void anEventThatTheDriverDoesNotDestroyHidesNoOtherRefusal() {
        gpu.faults().failOn(DriverCall.EVENT_RECORD, 0, 1, CudaResult.OUT_OF_MEMORY);
        gpu.faults().failOn(DriverCall.EVENT_DESTROY, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> order.record(0, stream)).hasMessageContaining("cuEventRecord");
        refusedDestroys = 1;
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
