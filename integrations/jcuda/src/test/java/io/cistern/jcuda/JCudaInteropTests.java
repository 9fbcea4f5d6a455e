package io.cistern.jcuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.Allocator;
import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.jvm.ClosingTypes;
import io.cistern.jvm.Cycles;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import jcuda.runtime.cudaEvent_t;
import jcuda.runtime.cudaStream_t;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Conversions, which need neither JCuda's native libraries nor a GPU.
class JCudaInteropTests {
    private static final int DEVICE = 0;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(Catalog.of(List.of(), List.of())).open();
    private final Allocator plain = memory.open(OpenOptions.made("plain", new PlainMemory()));
    private final CudaStream stream = CudaStream.open(memory, DEVICE);

    private final class PlainMemory implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return gpu.memory().allocate(device, byteSize);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            gpu.memory().free(device, address);
        }
    }

    JCudaInteropTests() {
        memory.currents().set(plain);
    }

    @AfterEach
    void close() {
        stream.close();
        assertThat(memory.liveBlocks()).isEmpty();
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void aPointerStandsForTheAddressOfItsBuffer() {
        DeviceBuffer buffer = DeviceBuffer.allocate(1000, stream);
        CUdeviceptr pointer = JCudaPointers.of(buffer);
        assertThat(JCudaPointers.address(pointer)).isEqualTo(buffer.address());
        assertThat(JCudaPointers.address(pointer.withByteOffset(12))).isEqualTo(buffer.address() + 12);
        assertThat(JCudaPointers.address(JCudaPointers.of(buffer.slice(100, 10))))
                .isEqualTo(buffer.address() + 100);
        buffer.close();
        assertThatIllegalStateException().isThrownBy(() -> JCudaPointers.of(buffer));
    }

    @Test
    void aPointerStandsForTheAddressOfPinnedMemory() {
        try (PinnedBuffer buffer = PinnedMemory.of(memory).allocate(1000)) {
            assertThat(JCudaPointers.address(JCudaPointers.of(buffer)))
                    .isEqualTo(buffer.segment().address());
        }
    }

    @Test
    void aPointerToAnArrayHasNoAddress() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> JCudaPointers.address(Pointer.to(new float[4])))
                .withMessageContaining("array");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> JCudaPointers.address(Pointer.to(new CUdeviceptr())))
                .withMessageContaining("array");
        assertThat(JCudaPointers.address(new CUdeviceptr())).isZero();
    }

    @Test
    void streamsAndEventsKeepTheirHandles() {
        CUstream driverStream = JCudaStreams.of(stream);
        cudaStream_t runtimeStream = JCudaStreams.runtimeOf(stream);
        assertThat(JCudaStreams.handle(driverStream)).isEqualTo(stream.handle());
        assertThat(JCudaStreams.foreign(memory, DEVICE, driverStream).handle()).isEqualTo(stream.handle());
        assertThat(JCudaStreams.foreign(memory, DEVICE, runtimeStream).handle()).isEqualTo(stream.handle());
        assertThat(driverStream.toString()).contains(Long.toHexString(stream.handle()));
        try (CudaEvent event = CudaEvent.open(memory, DEVICE)) {
            CUevent driverEvent = JCudaStreams.of(event);
            cudaEvent_t runtimeEvent = JCudaStreams.runtimeOf(event);
            assertThat(JCudaStreams.handle(driverEvent)).isEqualTo(event.handle());
            assertThat(JCudaStreams.foreign(memory, DEVICE, driverEvent)
                            .record(stream)
                            .handle())
                    .isEqualTo(event.handle());
            assertThat(JCudaStreams.foreign(memory, DEVICE, runtimeEvent).handle())
                    .isEqualTo(event.handle());
        }
    }

    @Test
    void theContextIsThePrimaryOne() throws Exception {
        try (JCudaContext entered = JCudaContext.enter(memory, DEVICE)) {
            CUcontext context = entered.context();
            assertThat(JCudaContext.isPrimary(memory, DEVICE, context)).isTrue();
            assertThat(JCudaContext.isPrimary(memory, DEVICE, new CUcontext())).isFalse();
        }
        Throwable[] thrown = new Throwable[1];
        Thread.startVirtualThread(() -> {
                    try {
                        JCudaContext.enter(memory, DEVICE).close();
                    } catch (IllegalStateException refused) {
                        thrown[0] = refused;
                    }
                })
                .join();
        assertThat(thrown[0]).hasMessageContaining("platform thread");
    }

    @Test
    void aContextIsLeftByTheThreadThatEnteredIt() throws Exception {
        JCudaContext entered = JCudaContext.enter(memory, DEVICE);
        Throwable[] thrown = new Throwable[1];
        Thread.ofPlatform()
                .start(() -> {
                    try {
                        entered.close();
                    } catch (WrongThreadException wrong) {
                        thrown[0] = wrong;
                    }
                })
                .join();
        assertThat(thrown[0]).isInstanceOf(WrongThreadException.class);
        entered.close();
    }

    /// Closing the inner one last would restore a context that has been left.
    @Test
    void contextsAreLeftInnermostFirst() {
        JCudaContext outer = JCudaContext.enter(memory, DEVICE);
        JCudaContext inner = JCudaContext.enter(memory, DEVICE);
        assertThatIllegalStateException().isThrownBy(outer::close).withMessageContaining("not the innermost");
        inner.close();
        inner.close();
        outer.close();
        outer.close();
    }

    @Test
    void memoryOfJCudaIsMeteredButNeverFreedByUs() {
        long address = gpu.memory().allocate(DEVICE, 4096);
        CUdeviceptr made = JCudaPointers.of(address);
        DeviceBuffer foreign = JCudaPointers.foreign(memory, made, 4096, DEVICE, JCudaStreams.of(stream));
        Allocator metered = memory.allocators().getLast();
        assertThat(metered.statistics(DEVICE).requestedBytes()).isEqualTo(4096);
        foreign.fill((byte) 1);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> JCudaPointers.foreign(memory, made, 4096, DEVICE, JCudaStreams.of(stream)));
        foreign.close();
        assertThat(metered.statistics(DEVICE).requestedBytes()).isZero();
        gpu.copies().fillBytes(DEVICE, address, (byte) 2, 4096, stream.handle());
        stream.synchronize();
        gpu.memory().free(DEVICE, address);
    }

    @Test
    void leftContextsLeaveNothing() throws Exception {
        assertThat(ClosingTypes.beside(JCudaContext.class))
                .containsExactly(JCudaContext.class, JCudaPointers.class, JCudaStreams.class);
        Cycles.assertNothingStays(10_000, () -> {
            try (JCudaContext context = JCudaContext.enter(memory, DEVICE);
                    CudaStream opened = CudaStream.open(memory, DEVICE);
                    DeviceBuffer buffer = DeviceBuffer.allocate(1000, opened)) {
                assertThat(context.context()).isNotNull();
                assertThat(JCudaPointers.of(buffer)).isNotNull();
                assertThat(JCudaStreams.of(opened)).isNotNull();
            }
        });
    }
}
