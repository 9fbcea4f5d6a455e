package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A buffer stays where it is until the work of its lease is known to be over.
@Timeout(60)
final class SpillLeaseTests {
    private static final long SIZE = 16L << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(4 * SIZE).build();
    private final DeviceMemory memory = DeviceMemory.open(gpu, SmallGpu.catalog());
    private final long stream = gpu.streams().create(0);
    private final TaskArbiter arbiter = memory.setCurrent("arbiter:upstream=caching")
            .extension(TaskArbiter.class)
            .orElseThrow();
    private final SpillStore store = SpillStore.open(memory, arbiter, SIZE);
    private final SpillableBuffer buffer = store.allocate(SIZE, 0, stream, 0);

    @AfterEach
    void close() {
        store.close();
        assertThat(gpu.misuses()).isEmpty();
        memory.close();
        gpu.close();
    }

    private SpillableBuffer.Lease leaseInUse() {
        SpillableBuffer.Lease lease = buffer.acquire(stream);
        gpu.copies().fillBytes(0, lease.address(), (byte) 7, SIZE, stream);
        return lease;
    }

    @Test
    void whereTheDriverGivesNoEventTheHostWaitsForTheWork() {
        SpillableBuffer.Lease lease = leaseInUse();
        gpu.faults().failOn(DriverCall.EVENT_RECORD, 0, 1, CudaResult.OUT_OF_MEMORY);

        lease.close();

        assertThat(gpu.streams().isIdle(0, stream)).isTrue();
        assertThat(store.spill(0, 1)).isEqualTo(SIZE);
    }

    @Test
    void aLeaseWhoseWorkCanNeitherBeMarkedNorAwaitedIsOpenStill() {
        SpillableBuffer.Lease lease = leaseInUse();
        gpu.faults().failOn(DriverCall.EVENT_RECORD, 0, 1, CudaResult.OUT_OF_MEMORY);
        gpu.faults().failOn(DriverCall.STREAM_SYNCHRONIZE, 0, 1, CudaResult.OUT_OF_MEMORY);

        assertThatThrownBy(lease::close).isInstanceOf(CudaException.class);
        assertThat(store.spill(0, 1)).isZero();

        lease.close();
        assertThat(store.spill(0, 1)).isEqualTo(SIZE);
    }
}
