package io.cistern.javacpp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnusableStreamException;
import io.cistern.jvm.ClosingTypes;
import io.cistern.jvm.Cycles;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerScope;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Pointers over blocks, which need neither the presets' native libraries nor a GPU.
@Timeout(60)
class DevicePointerTests {
    private static final int DEVICE = 0;
    private static final long LIMIT = 1L << 40;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(2 * LIMIT).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(), List.of()))
            .limitBytes(LIMIT)
            .open();
    private final Allocator plain = memory.open(OpenOptions.made("plain", new PlainMemory()));
    private final CudaStream stream = CudaStream.open(memory, DEVICE);

    /// Of all frees so far.
    private final List<Long> streams = new CopyOnWriteArrayList<>();

    private final class PlainMemory implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return gpu.memory().allocate(device, byteSize);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            streams.add(stream);
            gpu.memory().free(device, address);
        }
    }

    DevicePointerTests() {
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
        DevicePointer pointer = DevicePointer.of(buffer);
        assertThat(pointer.address()).isEqualTo(buffer.address());
        assertThat(pointer.capacity()).isEqualTo(1000);
        assertThat(DevicePointer.address(pointer.position(12))).isEqualTo(buffer.address() + 12);
        assertThat(DevicePointer.of(buffer.slice(100, 10)).address()).isEqualTo(buffer.address() + 100);
        pointer.close();
        assertThat(buffer.isClosed()).isFalse();
        buffer.close();
        assertThatIllegalStateException().isThrownBy(() -> DevicePointer.of(buffer));
    }

    @Test
    void aPointerStandsForTheAddressOfPinnedMemory() {
        try (PinnedBuffer buffer = PinnedMemory.of(memory).allocate(1000)) {
            assertThat(DevicePointer.of(buffer).address())
                    .isEqualTo(buffer.segment().address());
        }
        assertThat(DevicePointer.address(null)).isZero();
    }

    @Test
    void aPointerIntoABlockOwnsItTogetherWithTheFirst() {
        DevicePointer pointer = DevicePointer.allocate(4000, stream);
        Pointer part = pointer.getPointer(12);
        assertThat(part.address()).isEqualTo(pointer.address() + 12);
        assertThat(part.capacity()).isEqualTo(3988);
        part.close();
        pointer.close();
        assertThat(memory.liveBlocks()).isEmpty();
    }

    @Test
    void typedPointersCountInTheirElements() {
        try (DevicePointer pointer = DevicePointer.allocate(4000, stream)) {
            FloatPointer floats = pointer.getPointer(FloatPointer.class);
            assertThat(floats.capacity()).isEqualTo(1000);
            assertThat(floats.getPointer(3).address()).isEqualTo(pointer.address() + 12);
            assertThat(DevicePointer.address(new FloatPointer(pointer).position(3)))
                    .isEqualTo(pointer.address() + 12);
        }
    }

    @Test
    void aBlockIsFreedOnceInTheOrderOfItsStream() {
        DevicePointer pointer = DevicePointer.allocate(1000, stream);
        assertThat(plain.statistics(DEVICE).requestedBytes()).isEqualTo(1000);
        gpu.copies().fillBytes(DEVICE, pointer.address(), (byte) 1, 1000, stream.handle());
        pointer.close();
        pointer.close();
        pointer.deallocate();
        assertThat(pointer.isNull()).isTrue();
        assertThat(streams).containsExactly(stream.handle());
    }

    @Test
    void aPointerMadeOfItFreesTheSameBlock() {
        DevicePointer pointer = DevicePointer.allocate(1000, stream);
        FloatPointer floats = new FloatPointer(pointer);
        floats.close();
        assertThat(streams).containsExactly(stream.handle());
        pointer.close();
        assertThat(streams).hasSize(1);
    }

    @Test
    void aScopeFreesItsPointers() {
        try (PointerScope _ = new PointerScope()) {
            DevicePointer.allocate(1000, stream);
            DevicePointer kept = DevicePointer.allocate(2000, stream).retainReference();
            assertThat(kept.referenceCount()).isEqualTo(2);
            kept.releaseReference();
            assertThat(streams).isEmpty();
        }
        assertThat(streams).containsExactly(stream.handle(), stream.handle());
    }

    @Test
    void theGarbageCollectorFreesAfterAllWorkOfTheDevice() throws InterruptedException {
        drop();
        while (streams.isEmpty()) {
            System.gc();
            Thread.sleep(10);
        }
        assertThat(streams).hasSize(1).doesNotContain(stream.handle());
        assertThat(memory.liveBlocks()).isEmpty();
    }

    private void drop() {
        DevicePointer dropped = DevicePointer.allocate(1000, stream);
        gpu.copies().fillBytes(DEVICE, dropped.address(), (byte) 1, 1000, stream.handle());
    }

    @Test
    void aTypedPointerKeepsItsBlock() throws InterruptedException {
        FloatPointer floats = new FloatPointer(DevicePointer.allocate(1000, stream));
        for (int i = 0; i < 5; i++) {
            System.gc();
            Thread.sleep(10);
        }
        assertThat(streams).isEmpty();
        floats.close();
        assertThat(streams).containsExactly(stream.handle());
    }

    /// JavaCPP limits the bytes of its own memory to the size of the Java heap.
    @Test
    void blocksMayBeLargerThanTheJavaHeap() {
        long before = Pointer.totalBytes();
        try (DevicePointer pointer = DevicePointer.allocate(4 * Pointer.maxBytes(), stream)) {
            assertThat(pointer.capacity()).isEqualTo(4 * Pointer.maxBytes());
            assertThat(Pointer.totalBytes()).isEqualTo(before);
        }
    }

    @Test
    void aRequestThatCannotBeServedIsCisternsError() {
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> DevicePointer.allocate(LIMIT + 1, stream));
        assertThatIllegalArgumentException().isThrownBy(() -> DevicePointer.allocate(-1, stream));
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> DevicePointer.allocate(memory, 1000, 7, 0));
    }

    @Test
    void noBytesAreANullPointer() {
        try (DevicePointer pointer = DevicePointer.allocate(0, stream)) {
            assertThat(pointer.isNull()).isTrue();
        }
        assertThat(streams).isEmpty();
    }

    @Test
    void aCloseThatIsRefusedCanBeRepeated() throws InterruptedException {
        DevicePointer pointer = DevicePointer.allocate(memory, 1000, DEVICE, 2);
        Throwable[] thrown = new Throwable[1];
        Thread.startVirtualThread(() -> {
                    try {
                        pointer.close();
                    } catch (UnusableStreamException refused) {
                        thrown[0] = refused;
                    }
                })
                .join();
        assertThat(thrown[0]).isInstanceOf(UnusableStreamException.class);
        assertThat(plain.statistics(DEVICE).liveBlocks()).isEqualTo(1);
        pointer.close();
        assertThat(streams).containsExactly(2L);
    }

    @Test
    void streamsKeepTheirHandles() {
        CUstream_st preset = JavaCppStreams.of(stream);
        assertThat(preset.address()).isEqualTo(stream.handle());
        assertThat(JavaCppStreams.foreign(memory, DEVICE, preset).handle()).isEqualTo(stream.handle());
    }

    @Test
    void memoryOfThePresetsIsMeteredButNeverFreed() {
        long address = gpu.memory().allocate(DEVICE, 4096);
        Pointer made = DevicePointer.of(address, 4096);
        try (DeviceBuffer foreign = DevicePointer.foreign(memory, made, 4096, DEVICE, JavaCppStreams.of(stream))) {
            assertThat(memory.allocators().getLast().statistics(DEVICE).requestedBytes())
                    .isEqualTo(4096);
            foreign.fill((byte) 1);
        }
        stream.synchronize();
        gpu.memory().free(DEVICE, address);
        assertThat(streams).isEmpty();
    }

    @Test
    void closedPointersLeaveNothing() throws Exception {
        assertThat(ClosingTypes.beside(DevicePointer.class)).containsExactly(DevicePointer.class, JavaCppStreams.class);
        Cycles.assertNothingStays(10_000, () -> {
            try (DevicePointer pointer = DevicePointer.allocate(memory, 1000, DEVICE, 0)) {
                assertThat(new FloatPointer(pointer).isNull()).isFalse();
            }
        });
    }
}
