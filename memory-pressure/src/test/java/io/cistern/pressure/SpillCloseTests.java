package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.LockSupport;
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
        assertThat(gpu.heldObjects()).doesNotContainKey("streams");
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

    @Test
    void aStreamThatTheDriverRefusesToEndOnceEndsNevertheless() {
        store.spill(0, SIZE);
        long streams = gpu.heldObjects().get("streams");
        gpu.faults().failOn(DriverCall.STREAM_DESTROY, 0, 1, CudaResult.UNKNOWN);
        store.close();
        assertThat(gpu.heldObjects().getOrDefault("streams", 0L)).isEqualTo(streams - 2);
    }

    @Test
    void aClosedStoreAllocatesNothing() {
        store.close();
        for (int device = 0; device < 2; device++) {
            int on = device;
            assertThatIllegalStateException()
                    .isThrownBy(() -> store.allocate(SIZE, on, 0, 0))
                    .withMessageContaining("the spill store is closed");
            assertThat(store.spill(device, SIZE)).isZero();
        }
        assertThat(arbiter.ownedBlocks()).isZero();
    }

    @Test
    void nothingKeepsAClosedStore() throws InterruptedException {
        List<WeakReference<SpillStore>> closed = List.of(
                closed(SpillStore.open(memory, arbiter, SIZE)),
                closed(SpillStore.open(memory, SIZE, Path.of("unused"))));
        for (int i = 0; i < 100 && closed.stream().anyMatch(each -> each.get() != null); i++) {
            System.gc();
            Thread.sleep(10);
        }
        assertThat(closed).allMatch(each -> each.get() == null);
    }

    private static WeakReference<SpillStore> closed(SpillStore opened) {
        opened.allocate(SIZE, 0, 0, 0);
        opened.spill(0, SIZE);
        opened.close();
        return new WeakReference<>(opened);
    }

    /// They get a buffer, which the store closes, or hear that it is closed.
    @Test
    void allocationsDuringTheCloseLeaveNothing() throws Exception {
        for (int round = 0; round < 200; round++) {
            SpillStore closing = SpillStore.open(memory, arbiter, SIZE);
            List<FutureTask<SpillableBuffer>> allocations = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                int device = i % 2;
                allocations.add(new FutureTask<>(() -> closing.allocate(512, device, 0, 0)));
            }
            allocations.forEach(each -> Thread.ofPlatform().start(each));
            LockSupport.parkNanos(round * 1_000);
            closing.close();
            for (FutureTask<SpillableBuffer> each : allocations) {
                try {
                    assertThat(each.get().place()).isEqualTo(SpillPlace.CLOSED);
                } catch (ExecutionException refused) {
                    assertThat(refused.getCause()).hasMessageContaining("the spill store is closed");
                }
            }
        }
        assertThat(memory.liveBlocks()).hasSize(2); // of the other store
    }
}
