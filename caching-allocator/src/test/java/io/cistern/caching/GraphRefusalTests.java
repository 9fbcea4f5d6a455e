package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.graph.GraphCapture;
import io.cistern.spi.TrimMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Graphs are gone while the driver refuses the wait for all work: their memory goes to nobody, and is not lost.
class GraphRefusalTests extends PoolFixture {
    GraphRefusalTests() {
        super(1024 * MIB);
    }

    private void refuseWaits(int times) {
        gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, times, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.CONTEXT_RECORD_EVENT, 0, times, CudaResult.UNKNOWN);
    }

    private long reserved() {
        return memory.allocators().stream()
                .mapToLong(each -> each.reservedBytes(DEVICE).orElse(0))
                .sum();
    }

    private void endCaptureWhileRefused(String spec) {
        memory.setCurrent(spec);
        gpu.keepBusy(DEVICE, stream, 1_000_000_000);
        GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL);
        free(allocate(8 * MIB), allocate(MIB));
        refuseWaits(Integer.MAX_VALUE);
        capture.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:source=linear"})
    void memoryThatABusyStreamFreedStaysUntilTheDriverWaits(String spec) {
        endCaptureWhileRefused(spec);
        memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        assertThat(reserved()).isGreaterThanOrEqualTo(9 * MIB);
        gpu.faults().clear();
        memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        assertThat(reserved()).isZero();
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "direct"})
    void theEndAsksOnceMore(String spec) {
        endCaptureWhileRefused(spec);
        refuseWaits(1);
        memory.close();
        assertThat(memory.allocators()).isEmpty();
    }
}
