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
import io.cistern.cuda.CudaException;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.RangeAttributes;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Prefetches, advice and the host's view of buffers.
class ManagedMemoryTests {
    private static final long MIB = 1 << 20;
    private static final MemoryLocation HERE = MemoryLocation.device(0);
    private static final RangeAttributes NONE =
            new RangeAttributes(false, Optional.empty(), List.of(), Optional.empty());

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
    void adviceAndTheLastPrefetchAreReadBack() {
        try (DeviceBuffer buffer = buffer(managed, 4 * MIB);
                DeviceBuffer other = buffer(plain, MIB)) {
            assertThat(ManagedMemory.attributes(buffer)).isEqualTo(NONE);
            ManagedMemory.advise(buffer, MemoryAdvice.SET_READ_MOSTLY, HERE);
            ManagedMemory.advise(buffer, MemoryAdvice.SET_ACCESSED_BY, HERE);
            ManagedMemory.advise(buffer, MemoryAdvice.SET_ACCESSED_BY, MemoryLocation.host());
            ManagedMemory.advise(buffer, MemoryAdvice.SET_PREFERRED_LOCATION, MemoryLocation.host());
            ManagedMemory.prefetch(buffer, HERE, stream);
            RangeAttributes all = new RangeAttributes(
                    true, Optional.of(MemoryLocation.host()), List.of(HERE, MemoryLocation.host()), Optional.of(HERE));
            assertThat(ManagedMemory.attributes(buffer)).isEqualTo(all);

            DeviceBuffer head = buffer.slice(0, MIB);
            ManagedMemory.advise(head, MemoryAdvice.UNSET_READ_MOSTLY, HERE);
            ManagedMemory.advise(head, MemoryAdvice.UNSET_ACCESSED_BY, HERE);
            ManagedMemory.advise(head, MemoryAdvice.UNSET_PREFERRED_LOCATION, HERE);
            ManagedMemory.prefetch(head, MemoryLocation.host(), stream);
            assertThat(ManagedMemory.attributes(buffer))
                    .as("of all pages")
                    .isEqualTo(new RangeAttributes(
                            false, Optional.empty(), List.of(MemoryLocation.host()), Optional.empty()));
            assertThat(ManagedMemory.attributes(buffer.slice(MIB, MIB))).isEqualTo(all);
            assertThat(ManagedMemory.attributes(head).lastPrefetch()).contains(MemoryLocation.host());
            assertThatIllegalArgumentException().isThrownBy(() -> ManagedMemory.attributes(other));
        }
    }

    @Test
    void discardedPagesAreOnTheDeviceAndNeighboursKeepTheirBytes() {
        try (DeviceBuffer all = buffer(managed, 4 * MIB);
                DeviceBuffer other = buffer(plain, MIB)) {
            long free = gpu.memory().freeBytes(0);
            all.fill((byte) 5);
            gpu.keepBusy(0, stream.handle(), 1_000_000);
            ManagedMemory.discard(all.slice(MIB - 100, MIB), stream);
            ManagedMemory.discard(all.slice(3 * MIB + 100, 100), stream);
            stream.synchronize();
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(free - 4 * MIB);
            byte[] bytes = all.hostView().toArray(ValueLayout.JAVA_BYTE);
            assertThat(bytes[(int) MIB]).isNotEqualTo((byte) 5);
            assertThat(Arrays.copyOf(bytes, (int) MIB)).containsOnly(5);
            assertThat(Arrays.copyOfRange(bytes, (int) (2 * MIB - 100), bytes.length))
                    .containsOnly(5);
            all.fill((byte) 6);
            stream.synchronize();
            assertThat(all.hostView().toArray(ValueLayout.JAVA_BYTE)).containsOnly(6);
            assertThatIllegalArgumentException().isThrownBy(() -> ManagedMemory.discard(other, stream));
            assertThatThrownBy(() -> ManagedMemory.discard(all, 0)).isInstanceOf(CudaException.class);
        }
    }

    @Test
    void emptyAndClosedBuffers() {
        DeviceBuffer empty = buffer(managed, 0);
        ManagedMemory.prefetch(empty, HERE, stream.handle());
        ManagedMemory.discard(empty, stream);
        assertThat(ManagedMemory.attributes(empty)).isEqualTo(NONE);
        assertThat(ManagedMemory.isManaged(empty)).isFalse();
        empty.close();
        assertThatIllegalStateException().isThrownBy(() -> ManagedMemory.discard(empty, stream));
        assertThatIllegalStateException().isThrownBy(() -> ManagedMemory.attributes(empty));
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

    /// C's sort calls a comparison that calls the action: until it returns, native code uses the memory.
    @SuppressWarnings("restricted")
    private static void whileNativeCodeUses(MemorySegment twoLongs, Runnable action) throws Throwable {
        Linker linker = Linker.nativeLinker();
        MethodHandle compare = MethodHandles.dropArguments(
                MethodHandles.insertArguments(
                        MethodHandles.lookup()
                                .findStatic(
                                        ManagedMemoryTests.class,
                                        "equalAfter",
                                        MethodType.methodType(int.class, Runnable.class)),
                        0,
                        action),
                0,
                MemorySegment.class,
                MemorySegment.class);
        MethodHandle sort = linker.downcallHandle(
                linker.defaultLookup().findOrThrow("qsort"),
                FunctionDescriptor.ofVoid(
                        ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS));
        try (Arena arena = Arena.ofConfined()) {
            sort.invokeExact(
                    twoLongs,
                    2L,
                    8L,
                    linker.upcallStub(
                            compare,
                            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.ADDRESS),
                            arena));
        }
    }

    @SuppressWarnings("unused") // called by C
    private static int equalAfter(Runnable action) {
        action.run();
        return 0;
    }

    @Test
    void aBufferThatCanNotEndYetIsNotReplaced() throws Throwable {
        DeviceBuffer buffer = buffer(managed, 16);
        List<Runnable> ends =
                List.of(() -> buffer.resize(8), () -> buffer.resize(64), () -> buffer.moveToStream(0), buffer::close);
        List<Throwable> refusals = new ArrayList<>();
        whileNativeCodeUses(
                buffer.hostView(),
                () -> ends.forEach(end -> {
                    try {
                        end.run();
                    } catch (IllegalStateException inUse) {
                        refusals.add(inUse);
                    }
                }));
        assertThat(refusals).hasSize(4);
        assertThat(buffer.capacityBytes()).isEqualTo(16);
        buffer.close();
        assertThat(memory.liveBlocks()).isEmpty();
    }
}
