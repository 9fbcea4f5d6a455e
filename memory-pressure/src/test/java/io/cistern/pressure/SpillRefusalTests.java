package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A driver that refuses calls in the middle of a move, or at the end of a lease: the buffer is in one place, and host
/// memory, of which there is enough for one buffer, is there for the next move.
@Timeout(60)
final class SpillRefusalTests {
    private static final long SIZE = 16L << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(4 * SIZE).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(SmallGpu.catalog()).open();
    private final long stream = gpu.streams().create(0);
    private final TaskArbiter arbiter = memory.setCurrent("arbiter:upstream=caching")
            .extension(TaskArbiter.class)
            .orElseThrow();
    private final SpillStore store = SpillStore.open(memory, arbiter, SIZE);
    private final SpillableBuffer buffer = store.allocate(SIZE, 0, stream, 0);

    @AfterEach
    void nothingIsLost() {
        gpu.faults().clear();
        assertThat(store.spill(0, 1)).isEqualTo(SIZE);
        comeBack();
        buffer.close();
        store.close();
        assertThat(gpu.misuses()).isEmpty();
        memory.close();
        gpu.close();
    }

    private void comeBack() {
        buffer.acquire(stream).close();
        assertThat(buffer.place()).isEqualTo(SpillPlace.DEVICE);
    }

    private void refuse(DriverCall call) {
        gpu.faults().failOn(call, 0, 1, CudaResult.OUT_OF_MEMORY);
    }

    @Test
    void hostMemoryGoesBackThoughTheCopyFromItIsNotMarked() {
        store.spill(0, 1);
        gpu.faults().failOn(DriverCall.EVENT_RECORD, 0, Integer.MAX_VALUE, CudaResult.OUT_OF_MEMORY);
        comeBack();
        gpu.devices().synchronize(0);
    }

    @Test
    void hostMemoryThatTheDriverDoesNotTakeBackNowGoesBackLater() {
        store.spill(0, 1);
        comeBack();
        gpu.devices().synchronize(0);
        gpu.faults().failOn(DriverCall.MEM_FREE_HOST, 0, DeadContext.MOST_TRIES, CudaResult.OUT_OF_MEMORY);
        assertThat(store.spill(0, 1)).isZero();
    }

    @Test
    void aBufferSpillsThoughItsCopyIsNeitherMarkedNorAwaited() {
        driverGivesNoFence();
        assertThat(store.spill(0, 1)).isEqualTo(SIZE);
        gpu.faults().clear();
        comeBack();
        gpu.devices().synchronize(0);
    }

    private void driverGivesNoFence() {
        for (DriverCall call :
                List.of(DriverCall.EVENT_RECORD, DriverCall.CONTEXT_RECORD_EVENT, DriverCall.CONTEXT_SYNCHRONIZE)) {
            gpu.faults().failOn(call, 0, Integer.MAX_VALUE, CudaResult.OUT_OF_MEMORY);
        }
    }

    @Test
    void aBufferClosesThoughAnEventOfItStays() {
        SpillableBuffer other = store.allocate(SIZE, 0, stream, 1);
        refuse(DriverCall.EVENT_DESTROY);
        other.close();
        assertThat(other.place()).isEqualTo(SpillPlace.CLOSED);
    }

    private SpillableBuffer.Lease leaseInUse() {
        SpillableBuffer.Lease lease = buffer.acquire(stream);
        gpu.copies().fillBytes(0, lease.address(), (byte) 7, SIZE, stream);
        return lease;
    }

    @Test
    void whereTheDriverGivesNoEventForALeaseTheHostWaitsForItsWork() {
        SpillableBuffer.Lease lease = leaseInUse();
        refuse(DriverCall.EVENT_RECORD);
        refuse(DriverCall.CONTEXT_RECORD_EVENT);
        lease.close();
        assertThat(gpu.streams().isIdle(0, stream)).isTrue();
    }

    @Test
    void aBufferStaysWhileALeasesWorkIsNeitherMarkedNorAwaited() {
        SpillableBuffer.Lease lease = leaseInUse();
        driverGivesNoFence();
        lease.close();
        assertThat(store.spill(0, 1)).isZero();
        assertThat(buffer.place()).isEqualTo(SpillPlace.DEVICE);
    }
}
