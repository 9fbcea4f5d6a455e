package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/// Each driver call of a compaction fails, once or several times in a row: no byte is lost, and the next attempt works.
final class CompactionFaultTests extends CompactionFixture {
    private static final int MAX_CALLS = 1000;

    private static final List<DriverCall> CALLS = List.of(
            DriverCall.MEM_CREATE,
            DriverCall.MEM_MAP,
            DriverCall.MEM_SET_ACCESS,
            DriverCall.MEM_UNMAP,
            DriverCall.MEM_RELEASE,
            DriverCall.MEM_ADDRESS_RESERVE,
            DriverCall.MEM_ADDRESS_FREE,
            DriverCall.MEMCPY_DTOD_ASYNC,
            DriverCall.STREAM_CREATE,
            DriverCall.STREAM_DESTROY,
            DriverCall.STREAM_SYNCHRONIZE,
            DriverCall.CONTEXT_SYNCHRONIZE);

    @ParameterizedTest
    @FieldSource("CALLS")
    void noByteIsLostWhicheverCallFails(DriverCall call) {
        failEach(call, 1, 26 * MIB);
    }

    /// The steps that undo the others fail too.
    @ParameterizedTest
    @FieldSource("CALLS")
    void noByteIsLostIfTheNextCallsFailToo(DriverCall call) {
        failEach(call, 3, 26 * MIB);
    }

    /// The first page goes by way of the host.
    @ParameterizedTest
    @FieldSource("CALLS")
    void noByteIsLostOnADeviceWithoutRoom(DriverCall call) {
        failEach(call, 1, 0);
        assertThat(figure("on_host_bytes")).isZero();
        assertThat(figure("compaction.freed_bytes")).isPositive();
    }

    /// The stream of its copies.
    @Test
    void aRefusalToDestroyTheStreamLeavesNone() {
        fragment("caching", 26 * MIB);
        long before = gpu.heldObjects().get("streams");
        gpu.faults().failOn(DriverCall.STREAM_DESTROY, 0, 1, CudaResult.UNKNOWN);
        memory.current(DEVICE).compact(DEVICE);
        assertThat(gpu.faults().failedCalls()).isOne();
        assertThat(gpu.heldObjects()).containsEntry("streams", before);
    }

    private void failEach(DriverCall call, int times, long free) {
        fragment("caching", free);
        long before = gpu.calls().of(call);
        int after = 0;
        while (compactFails(call, after, times) && after < MAX_CALLS) {
            assertContents();
            after++;
        }
        assertThat(after).isLessThan(MAX_CALLS);
        assertThat(gpu.calls().of(call)).isGreaterThan(before);
        memory.current(DEVICE).compact(DEVICE);
        assertContents();
    }

    /// Whether the driver's refusal reached the caller; what is given back may be refused without that.
    private boolean compactFails(DriverCall call, int after, int times) {
        gpu.faults().failOn(call, after, times, CudaResult.NOT_SUPPORTED);
        try {
            memory.current(DEVICE).compact(DEVICE);
            return false;
        } catch (CudaException refused) {
            return true;
        } finally {
            gpu.faults().clear();
        }
    }
}
