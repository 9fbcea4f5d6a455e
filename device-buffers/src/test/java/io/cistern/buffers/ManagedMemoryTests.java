package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.buffers.dlpack.Dlpack;
import io.cistern.buffers.dlpack.DlpackTensor;
import io.cistern.buffers.dlpack.TensorLayout;
import io.cistern.buffers.dlpack.TensorType;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Prefetches, advice and the host's view of buffers.
class ManagedMemoryTests {
    private static final long MIB = 1 << 20;
    private static final MemoryLocation HERE = MemoryLocation.device(0);

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(1L << 30).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final Allocator managed = memory.open(OpenOptions.made("managed", new Plain(true)));
    private final Allocator plain = memory.open(OpenOptions.made("plain", new Plain(false)));
    private final CudaStream stream = CudaStream.open(memory, 0);

    /// The driver's own.
    private final class Plain implements DeviceAllocator {
        private final boolean ofManaged;

        Plain(boolean ofManaged) {
            this.ofManaged = ofManaged;
        }

        @Override
        public long allocate(long byteSize, int device, long on) {
            return ofManaged
                    ? gpu.unifiedMemory().allocate(device, byteSize)
                    : gpu.memory().allocate(device, byteSize);
        }

        @Override
        public void free(long address, long byteSize, int device, long on) {
            gpu.memory().free(device, address);
        }
    }

    @AfterEach
    void close() {
        stream.close();
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private DeviceBuffer buffer(Allocator from, long byteSize) {
        return DeviceBuffer.allocate(from, byteSize, 0, stream.handle());
    }

    @Test
    void prefetchesMoveABufferInTheOrderOfTheStream() {
        long free = gpu.memory().freeBytes(0);
        try (DeviceBuffer buffer = buffer(managed, 16 * MIB)) {
            gpu.keepBusy(0, stream.handle(), 1_000_000);
            ManagedMemory.prefetch(buffer, HERE, stream.handle());
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(free);
            stream.synchronize();
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(free - 16 * MIB);
            ManagedMemory.prefetch(buffer.slice(0, 4 * MIB), MemoryLocation.host(), stream.handle());
            stream.synchronize();
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(free - 12 * MIB);
        }
    }

    @Test
    void severalBuffersMoveTogetherOrNone() {
        long free = gpu.memory().freeBytes(0);
        try (DeviceBuffer one = buffer(managed, 16 * MIB);
                DeviceBuffer two = buffer(managed, 8 * MIB);
                DeviceBuffer other = buffer(plain, MIB)) {
            long before = gpu.memory().freeBytes(0);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> ManagedMemory.prefetch(List.of(one, other), HERE, stream));
            stream.synchronize();
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(before);
            ManagedMemory.prefetch(List.of(one, two), HERE, stream);
            stream.synchronize();
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(before - 24 * MIB);
        }
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(free);
    }

    @Test
    void theHostSeesTheBuffer() {
        try (DeviceBuffer buffer = buffer(managed, 1000)) {
            buffer.fill((byte) 9);
            stream.synchronize();
            assertThat(buffer.hostView().byteSize()).isEqualTo(1000);
            assertThat(buffer.hostView().get(ValueLayout.JAVA_BYTE, 999)).isEqualTo((byte) 9);
        }
    }

    @Test
    void adviceIsTakenOfManagedBuffersAlone() {
        try (DeviceBuffer buffer = buffer(managed, MIB);
                DeviceBuffer other = buffer(plain, MIB)) {
            assertThat(ManagedMemory.isManaged(buffer)).isTrue();
            assertThat(ManagedMemory.isManaged(other)).isFalse();
            ManagedMemory.advise(buffer, MemoryAdvice.SET_PREFERRED_LOCATION, MemoryLocation.host());
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> ManagedMemory.advise(other, MemoryAdvice.SET_READ_MOSTLY, HERE))
                    .withMessageContaining("caching:source=managed");
            assertThatIllegalArgumentException().isThrownBy(() -> ManagedMemory.prefetch(other, HERE, stream.handle()));
            assertThatThrownBy(other::hostView).isInstanceOf(UnsupportedOperationException.class);
        }
    }

    @Test
    void emptyAndClosedBuffers() {
        DeviceBuffer empty = buffer(managed, 0);
        ManagedMemory.prefetch(empty, HERE, stream.handle());
        assertThat(ManagedMemory.isManaged(empty)).isFalse();
        empty.close();
        assertThatIllegalStateException().isThrownBy(() -> ManagedMemory.prefetch(empty, HERE, stream.handle()));
    }

    /// As DLPack's device type 13.
    @Test
    void aManagedTensorGoesBothWays() {
        try (DeviceBuffer buffer = buffer(managed, 400)) {
            long tensor = Dlpack.share(buffer, TensorLayout.compact(TensorType.INT32, 100), 1);
            try (DlpackTensor taken = Dlpack.take(tensor, stream)) {
                assertThat(ManagedMemory.isManaged(taken.buffer())).isTrue();
            }
        }
    }
}
