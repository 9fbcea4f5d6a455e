package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// A store that is closed while one of its parts can't be: all others are, and the next call closes the rest.
final class SpillCloseTests {
    private static final long SIZE = 16L << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(SmallGpu.catalog()).open();
    private final TaskArbiter arbiter = memory.setCurrent("arbiter:upstream=caching")
            .extension(TaskArbiter.class)
            .orElseThrow();
    private final SpillStore store = SpillStore.open(memory, arbiter, 2 * SIZE);
    private final SpillableBuffer first = store.allocate(SIZE, 0, 0, 0);
    private final SpillableBuffer second = store.allocate(SIZE, 1, 0, 0);

    @AfterEach
    void allIsClosedInTheEnd() {
        store.close();
        assertThat(first.place()).isEqualTo(SpillPlace.CLOSED);
        assertThat(second.place()).isEqualTo(SpillPlace.CLOSED);
        assertThat(calls(DriverCall.STREAM_DESTROY)).isEqualTo(calls(DriverCall.STREAM_CREATE));
        assertThat(calls(DriverCall.MEM_FREE_HOST)).isEqualTo(calls(DriverCall.MEM_HOST_ALLOC));
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private long calls(DriverCall call) {
        return gpu.calls().of(call);
    }

    @Test
    void aBufferInUseKeepsNoOtherOpen() {
        try (SpillableBuffer.Lease _ = first.acquire(0)) {
            assertThatIllegalStateException().isThrownBy(store::close).withMessageContaining("1 open leases");
            assertThat(second.place()).isEqualTo(SpillPlace.CLOSED);
            assertThat(first.place()).isEqualTo(SpillPlace.DEVICE);
            assertThat(calls(DriverCall.STREAM_DESTROY)).isOne();
        }
    }

    @Test
    void aStreamThatTheDriverWillNotWaitForKeepsNothingOpen() {
        store.spill(0, SIZE);
        store.spill(1, SIZE);
        gpu.faults().failOn(DriverCall.STREAM_SYNCHRONIZE, 0, 1, CudaResult.UNKNOWN);
        assertThatExceptionOfType(CudaException.class).isThrownBy(store::close);
        assertThat(calls(DriverCall.STREAM_DESTROY)).isEqualTo(2);
        assertThat(calls(DriverCall.MEM_FREE_HOST)).isEqualTo(2);
    }
}
