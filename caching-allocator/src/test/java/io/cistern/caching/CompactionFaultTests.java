package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Each driver call of a compaction fails once, or from then on: no byte is lost, and the next attempt works.
final class CompactionFaultTests extends CompactionFixture {
    private static final int MAX_CALLS = 1000;

    @ParameterizedTest
    @EnumSource(
            names = {
                "MEM_CREATE",
                "MEM_MAP",
                "MEM_SET_ACCESS",
                "MEM_UNMAP",
                "MEM_RELEASE",
                "MEM_ADDRESS_RESERVE",
                "MEM_ADDRESS_FREE",
                "MEMCPY_DTOD_ASYNC",
                "STREAM_CREATE",
                "STREAM_DESTROY",
                "STREAM_SYNCHRONIZE",
                "CONTEXT_SYNCHRONIZE"
            })
    void noByteIsLostWhicheverCallFails(DriverCall call) {
        fragment("caching");
        long before = gpu.calls().of(call);
        int after = 0;
        while (compactFails(call, after) && after < MAX_CALLS) {
            assertContents();
            after++;
        }
        assertThat(after).isLessThan(MAX_CALLS);
        assertThat(gpu.calls().of(call)).isGreaterThan(before);
        memory.current(DEVICE).compact(DEVICE);
        assertContents();
    }

    /// Whether the driver's refusal reached the caller; what is given back may be refused without that.
    private boolean compactFails(DriverCall call, int after) {
        gpu.faults().failOn(call, after, 1, CudaResult.NOT_SUPPORTED);
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
