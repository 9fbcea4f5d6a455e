package io.cistern.buffers.dlpack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.Allocator;
import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.buffers.DeviceArena;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.cuda.library.NativeCode;
import io.cistern.cuda.library.SharedLibrary;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What other libraries see of a buffer, what is believed of their tensors, and when each of both ends.
class DlpackTests {
    private static final long BUSY = 1_000_000_000L;
    private static final TensorLayout MATRIX = TensorLayout.compact(TensorType.FLOAT32, 3, 5);

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(1L << 30).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final CountingAllocator made = new CountingAllocator(gpu);
    private final Allocator allocator = memory.open(OpenOptions.made("counting", made));
    private final CudaStream stream = CudaStream.open(memory, 0);
    private final CudaStream consumer = CudaStream.open(memory, 0);
    private final Arena arena = Arena.ofShared();

    DlpackTests() {
        memory.currents().set(allocator);
    }

    /// `cuMemAllocAsync`, counted.
    private static final class CountingAllocator implements DeviceAllocator {
        private final SimulatedGpu gpu;
        private final AtomicInteger frees = new AtomicInteger();
        private volatile long lastStream;

        CountingAllocator(SimulatedGpu gpu) {
            this.gpu = gpu;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return gpu.pools().allocate(device, byteSize, stream);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            gpu.pools().free(device, address, stream);
            lastStream = stream;
            frees.incrementAndGet();
        }
    }

    @AfterEach
    void nothingIsLeft() {
        assertThat(allocator.statistics(0).liveBlocks()).isZero();
        stream.close();
        consumer.close();
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
        arena.close();
    }

    private DeviceBuffer buffer(long byteSize) {
        return DeviceBuffer.allocate(byteSize, stream);
    }

    /// As C does.
    private static void delete(long tensor, boolean versioned) {
        MemorySegment deleter =
                MemorySegment.ofAddress(TensorStruct.at(tensor, versioned).deleter());
        MethodHandle call = SharedLibrary.call(FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG));
        try {
            call.invokeExact(deleter, tensor);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static void delete(long tensor) {
        delete(tensor, true);
    }

    @Test
    void whatTheLastDeletionCouldNotFreeGoesWithTheDeviceMemory() {
        long tensor;
        try (DeviceBuffer buffer = buffer(256)) {
            tensor = Dlpack.share(buffer, MATRIX, Dlpack.NO_STREAM);
        }
        gpu.faults().failOn(DriverCall.STREAM_CREATE, 0, 1, CudaResult.UNKNOWN);
        delete(tensor);
        assertThat(allocator.statistics(0).liveBlocks()).isOne();
        memory.close();
    }

    @Test
    void aSharedTensorHasTheFieldsOfTheStandardAtTheirPlaces() {
        try (DeviceBuffer buffer = buffer(60)) {
            long tensor = Dlpack.share(buffer, MATRIX, consumer.handle(), TensorFlag.READ_ONLY);
            MemorySegment c = NativeCode.memory(tensor, 80);
            assertThat(c.get(ValueLayout.JAVA_INT, 0)).as("major").isOne();
            assertThat(c.get(ValueLayout.JAVA_INT, 4)).as("minor").isZero();
            assertThat(c.get(ValueLayout.JAVA_LONG, 16)).as("deleter").isNotZero();
            assertThat(c.get(ValueLayout.JAVA_LONG, 24)).as("flags").isOne();
            assertIsMatrix(c.asSlice(32, 48), buffer.address());
            delete(tensor);
        }
    }

    @Test
    void theFormBeforeHasTheSameTensorFirst() {
        try (DeviceBuffer buffer = buffer(60)) {
            long tensor = Dlpack.shareUnversioned(buffer, MATRIX, consumer.handle());
            MemorySegment c = NativeCode.memory(tensor, 64);
            assertIsMatrix(c.asSlice(0, 48), buffer.address());
            assertThat(c.get(ValueLayout.JAVA_LONG, 56)).as("deleter").isNotZero();
            delete(tensor, false);
        }
    }

    private static void assertIsMatrix(MemorySegment c, long address) {
        assertThat(c.get(ValueLayout.JAVA_LONG, 0)).as("data").isEqualTo(address);
        assertThat(c.get(ValueLayout.JAVA_INT, 8)).as("device type").isEqualTo(2);
        assertThat(c.get(ValueLayout.JAVA_INT, 12)).as("device").isZero();
        assertThat(c.get(ValueLayout.JAVA_INT, 16)).as("dimensions").isEqualTo(2);
        assertThat(c.get(ValueLayout.JAVA_BYTE, 20)).as("code").isEqualTo((byte) 2);
        assertThat(c.get(ValueLayout.JAVA_BYTE, 21)).as("bits").isEqualTo((byte) 32);
        assertThat(c.get(ValueLayout.JAVA_SHORT, 22)).as("lanes").isEqualTo((short) 1);
        assertThat(longs(c.get(ValueLayout.JAVA_LONG, 24), 2)).as("shape").containsExactly(3, 5);
        assertThat(longs(c.get(ValueLayout.JAVA_LONG, 32), 2)).as("strides").containsExactly(5, 1);
        assertThat(c.get(ValueLayout.JAVA_LONG, 40)).as("byte_offset").isZero();
    }

    private static long[] longs(long address, int count) {
        return NativeCode.memory(address, 8L * count).toArray(ValueLayout.JAVA_LONG);
    }

    @Test
    void theLastHolderFreesWhicheverThatIs() {
        DeviceBuffer buffer = buffer(60);
        long first = Dlpack.share(buffer, MATRIX, consumer.handle());
        long second = Dlpack.share(buffer, MATRIX, Dlpack.NO_STREAM);
        delete(first);
        buffer.close();
        assertThat(made.frees).hasValue(0);
        delete(second);
        assertThat(made.frees).hasValue(1);
        DeviceBuffer other = buffer(60);
        long third = Dlpack.share(other, MATRIX, Dlpack.NO_STREAM);
        delete(third);
        assertThat(made.frees).hasValue(1);
        other.close();
        assertThat(made.frees).hasValue(2);
    }

    @Test
    void aTensorThatIsDeletedTwiceIsFreedOnce() {
        DeviceBuffer buffer = buffer(60);
        DeviceBuffer kept = buffer.retainedSlice(0, 60);
        long tensor = Dlpack.share(buffer, MATRIX, consumer.handle());
        TensorStruct struct = TensorStruct.at(tensor, true);
        long deleter = struct.deleter();
        delete(tensor);
        SharedTensors.delete(tensor);
        buffer.close();
        assertThat(deleter).isEqualTo(SharedTensors.deleter());
        assertThat(made.frees).hasValue(0);
        kept.close();
        assertThat(made.frees).hasValue(1);
    }

    @Test
    void manyThreadsDeleteEachTensorOnce() throws InterruptedException {
        int each = 200;
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = Thread.ofPlatform().start(() -> {
                for (int n = 0; n < each; n++) {
                    DeviceBuffer buffer = buffer(60);
                    long tensor = Dlpack.share(buffer, MATRIX, consumer.handle());
                    buffer.close();
                    delete(tensor);
                }
            });
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(made.frees).hasValue(each * threads.length);
    }

    @Test
    void aVirtualThreadDeletesATensorOfAThreadsOwnStream() throws InterruptedException {
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, 60, 0, Streams.PER_THREAD_DEFAULT);
        long tensor = Dlpack.share(buffer, MATRIX, Streams.PER_THREAD_DEFAULT);
        buffer.close();
        Thread.ofVirtual().start(() -> delete(tensor)).join();
        assertThat(made.frees).hasValue(1);
    }

    @Test
    void whatTheDriverRefusesToOrderIsFreedWithTheNextTensor() {
        DeviceBuffer buffer = buffer(60);
        long tensor = Dlpack.share(buffer, MATRIX, Dlpack.NO_STREAM);
        buffer.close();
        gpu.faults().failOn(DriverCall.STREAM_WAIT_EVENT, 0, 1, CudaResult.STREAM_CAPTURE_UNSUPPORTED);
        delete(tensor);
        assertThat(made.frees).hasValue(0);
        gpu.faults().clear();
        try (DeviceBuffer other = buffer(60)) {
            delete(Dlpack.share(other, MATRIX, consumer.handle()));
        }
        assertThat(made.frees).hasValue(2);
    }

    @Test
    void theConsumersStreamWaitsForTheBuffersUnlessItAsksForNoOrder() {
        try (DeviceBuffer buffer = buffer(60)) {
            gpu.keepBusy(0, stream.handle(), BUSY);
            buffer.fill((byte) 7);
            long unordered = Dlpack.share(buffer, MATRIX, Dlpack.NO_STREAM);
            assertThat(consumer.isIdle()).isTrue();
            long tensor = Dlpack.share(buffer, MATRIX, consumer.handle());
            assertThat(consumer.isIdle()).isFalse();
            delete(tensor);
            delete(unordered);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {Streams.LEGACY_DEFAULT, Streams.PER_THREAD_DEFAULT})
    void aDefaultStreamWaitsAsWell(long number) {
        try (DeviceBuffer buffer = buffer(60)) {
            gpu.keepBusy(0, stream.handle(), BUSY);
            long tensor = Dlpack.share(buffer, MATRIX, number);
            assertThat(gpu.streams().isIdle(0, number)).isFalse();
            delete(tensor);
        }
    }

    @Test
    void theMemoryIsFreeAfterTheConsumersStream() {
        DeviceBuffer buffer = buffer(60);
        long address = buffer.address();
        long tensor = Dlpack.share(buffer, MATRIX, consumer.handle());
        buffer.close();
        gpu.keepBusy(0, consumer.handle(), BUSY);
        gpu.copies().fillBytes(0, address, (byte) 1, 60, consumer.handle());
        assertThat(stream.isIdle()).isTrue();
        delete(tensor);
        assertThat(made.lastStream).isEqualTo(stream.handle());
        assertThat(stream.isIdle()).as("waits for the consumer").isFalse();
    }

    @Test
    void theMemoryOfAConsumerWithoutAStreamIsFreeAfterAllStreams() {
        DeviceBuffer buffer = buffer(60);
        long address = buffer.address();
        long tensor = Dlpack.share(buffer, MATRIX, Dlpack.NO_STREAM);
        buffer.close();
        gpu.keepBusy(0, consumer.handle(), BUSY);
        gpu.copies().fillBytes(0, address, (byte) 1, 60, consumer.handle());
        delete(tensor);
        assertThat(made.frees).hasValue(1);
        assertThat(stream.isIdle()).as("of the same device, or waiting").isFalse();
    }

    @Test
    void whatCantBeSharedIsRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> share(buffer(60), MATRIX, 0))
                .withMessageContaining("1 is the legacy default stream");
        assertThatIllegalArgumentException().isThrownBy(() -> share(buffer(60), MATRIX, -2));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> share(buffer(59), MATRIX, 1))
                .withMessageContaining("needs 60 bytes");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> {
                    try (DeviceBuffer whole = buffer(62)) {
                        share(whole.retainedSlice(2, 60), MATRIX, 1);
                    }
                })
                .withMessageContaining("not aligned");
        DeviceBuffer closed = buffer(60);
        closed.close();
        assertThatIllegalStateException().isThrownBy(() -> Dlpack.share(closed, MATRIX, 1));
    }

    @SuppressWarnings("CheckReturnValue") // throws
    private static void share(DeviceBuffer buffer, TensorLayout layout, long stream) {
        try (buffer) {
            Dlpack.share(buffer, layout, stream);
        }
    }

    @Test
    void memoryOfAnotherOwnerIsNotShared() {
        try (DeviceBuffer whole = buffer(60);
                DeviceArena ofSteps = DeviceArena.builder(memory).name("dlpack").open(0, stream.handle())) {
            assertThatExceptionOfType(UnsupportedOperationException.class)
                    .isThrownBy(() -> Dlpack.share(whole.slice(0, 60), MATRIX, 1));
            assertThatExceptionOfType(UnsupportedOperationException.class)
                    .isThrownBy(() -> Dlpack.share(ofSteps.buffer(60), MATRIX, 1));
        }
    }

    @Test
    void emptyAndScalarTensorsGoBothWays() {
        try (DeviceBuffer buffer = buffer(8)) {
            for (TensorLayout layout :
                    List.of(TensorLayout.compact(TensorType.FLOAT64, 0, 7), TensorLayout.compact(TensorType.FLOAT64))) {
                long tensor = Dlpack.share(buffer, layout, stream.handle());
                try (DlpackTensor taken = Dlpack.take(tensor, stream)) {
                    assertThat(taken.layout()).isEqualTo(layout);
                    assertThat(taken.buffer().byteSize()).isEqualTo(layout.byteSize());
                }
            }
        }
    }

    /// Numbers of less than a byte come several in an element; vectors have the alignment of one number.
    @Test
    void packedAndVectorTypesGoBothWays() {
        TensorType float4 = new TensorType(2, 32, 4);
        assertThat(TensorType.FLOAT4_E2M1FN_X2.byteSize()).isOne();
        assertThat(float4.byteSize()).isEqualTo(16);
        for (TensorLayout layout : List.of(
                TensorLayout.compact(TensorType.FLOAT4_E2M1FN_X2, 3, 5),
                TensorLayout.compact(TensorType.FLOAT8_E4M3FN, 15),
                TensorLayout.compact(new TensorType(15, 6, 4), 5),
                TensorLayout.compact(float4, 2))) {
            try (DeviceBuffer buffer = buffer(layout.byteSize())) {
                long tensor = Dlpack.share(buffer, layout, stream.handle());
                try (DlpackTensor taken = Dlpack.take(tensor, stream)) {
                    assertThat(taken.layout()).isEqualTo(layout);
                    assertThat(taken.buffer().byteSize()).isEqualTo(layout.byteSize());
                }
            }
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new TensorType(17, 4, 1))
                .withMessageContaining("two lanes");
    }

    @Test
    void aTakenTensorIsTheSameMemoryAndItsCloseEndsTheOther() {
        DeviceBuffer buffer = buffer(60);
        buffer.fill((byte) 42);
        long tensor = Dlpack.share(buffer, MATRIX, Dlpack.streamNumber(consumer), TensorFlag.COPIED);
        buffer.close();
        DlpackTensor taken = Dlpack.take(tensor, consumer);
        byte[] bytes = new byte[60];
        taken.buffer().copyTo(MemorySegment.ofArray(bytes));
        assertThat(bytes).containsOnly(42);
        assertThat(taken.flags()).containsExactly(TensorFlag.COPIED);
        assertThat(taken.layout()).isEqualTo(MATRIX);
        assertThatExceptionOfType(UnsupportedOperationException.class)
                .isThrownBy(() -> taken.buffer().retainedSlice(0, 4));
        assertThat(made.frees).hasValue(0);
        taken.close();
        taken.close();
        assertThat(made.frees).hasValue(1);
        assertThatIllegalStateException().isThrownBy(() -> taken.buffer().address());
    }

    /// A tensor that "C" makes, of memory of the driver's.
    private final class Made {
        final long memory = gpu.memory().allocate(0, 1 << 12);
        final MemorySegment struct = arena.allocate(80, 16);
        final MemorySegment dl = struct.asSlice(32);
        final AtomicInteger deletions = new AtomicInteger();

        Made() {
            struct.set(ValueLayout.JAVA_INT, 0, 1);
            struct.set(ValueLayout.JAVA_INT, 4, 3);
            struct.set(ValueLayout.JAVA_LONG, 16, deleter());
            dl.set(ValueLayout.JAVA_LONG, 0, memory);
            dl.set(ValueLayout.JAVA_INT, 8, 2);
            dl.set(ValueLayout.JAVA_INT, 16, 2);
            dl.set(ValueLayout.JAVA_BYTE, 20, (byte) 2);
            dl.set(ValueLayout.JAVA_BYTE, 21, (byte) 32);
            dl.set(ValueLayout.JAVA_SHORT, 22, (short) 1);
            dl.set(
                    ValueLayout.JAVA_LONG,
                    24,
                    arena.allocateFrom(ValueLayout.JAVA_LONG, 3, 5).address());
        }

        private long deleter() {
            try {
                MethodHandle deleted =
                        MethodHandles.lookup().bind(this, "deleted", MethodType.methodType(void.class, long.class));
                return NativeCode.function(deleted, FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG))
                        .address();
            } catch (ReflectiveOperationException e) {
                throw new AssertionError(e);
            }
        }

        @SuppressWarnings("unused") // from C
        void deleted(long self) {
            assertThat(self).isEqualTo(address());
            deletions.incrementAndGet();
        }

        long address() {
            return struct.address();
        }

        DlpackTensor taken() {
            return Dlpack.take(address(), stream);
        }

        void refused(Reason reason, String message) {
            assertThatExceptionOfType(SharingException.class)
                    .isThrownBy(this::taken)
                    .withMessageContaining(message)
                    .satisfies(refusal -> assertThat(refusal.reason()).isEqualTo(reason));
            assertThat(deletions).as("what is refused is not taken").hasValue(0);
        }
    }

    @Test
    void aTensorWithoutStridesIsCompactAndBeginsAtItsOffset() {
        Made made = new Made();
        made.dl.set(ValueLayout.JAVA_LONG, 40, 64);
        try (DlpackTensor taken = made.taken()) {
            assertThat(taken.buffer().address()).isEqualTo(made.memory + 64);
            assertThat(taken.layout()).isEqualTo(MATRIX);
            assertThat(taken.flags()).isEmpty();
        }
        assertThat(made.deletions).hasValue(1);
    }

    @Test
    void aTensorSpansItsStridesAndMayOverlapOthers() {
        Made made = new Made();
        made.dl.set(
                ValueLayout.JAVA_LONG,
                32,
                arena.allocateFrom(ValueLayout.JAVA_LONG, 1, 3).address());
        Made other = new Made();
        other.dl.set(ValueLayout.JAVA_LONG, 0, made.memory);
        try (DlpackTensor taken = made.taken();
                DlpackTensor again = other.taken()) {
            assertThat(taken.layout().strides()).containsExactly(1L, 3L);
            assertThat(taken.buffer().byteSize()).isEqualTo(60);
            assertThat(again.buffer().address()).isEqualTo(taken.buffer().address());
        }
    }

    @Test
    void aTensorIsTakenOnceUntilItIsClosed() {
        Made made = new Made();
        DlpackTensor taken = made.taken();
        assertThatIllegalStateException().isThrownBy(made::taken).withMessageContaining("was already taken");
        taken.close();
        made.taken().close();
        assertThat(made.deletions).hasValue(2);
    }

    @Test
    void whatIsNotOfThisVersionIsRefused() {
        Made made = new Made();
        made.struct.set(ValueLayout.JAVA_INT, 0, 2);
        made.refused(Reason.WRONG_VERSION, "version 2.3 of DLPack");
    }

    @ParameterizedTest
    @CsvSource({"1, 0, device type 1", "10, 0, device type 10", "2, 1, is on device 1"})
    void whatIsElsewhereIsRefused(int type, int device, String message) {
        Made made = new Made();
        made.dl.set(ValueLayout.JAVA_INT, 8, type);
        made.dl.set(ValueLayout.JAVA_INT, 12, device);
        made.refused(Reason.WRONG_DEVICE, message);
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0x10, does not know",
        "40, -1, first element",
        "40, 2, not aligned",
        "24, 0, shape",
        "40, 0x7fffffffffffff00, first element"
    })
    void aStrangePlaceIsRefused(long field, String value, String message) {
        Made made = new Made();
        made.dl.set(ValueLayout.JAVA_LONG, field, Long.decode(value));
        made.refused(Reason.MALFORMED, message);
    }

    @Test
    void strangeShapesAreRefused() {
        Made made = new Made();
        made.dl.set(ValueLayout.JAVA_INT, 16, -1);
        made.refused(Reason.MALFORMED, "-1 dimensions");
        made.dl.set(ValueLayout.JAVA_INT, 16, 65);
        made.refused(Reason.MALFORMED, "65 dimensions");
        made.dl.set(ValueLayout.JAVA_INT, 16, 2);
        shape(made, -1, 5);
        made.refused(Reason.MALFORMED, "negative");
        shape(made, 1L << 40, 1L << 40);
        made.refused(Reason.MALFORMED, "address space");
        made.dl.set(ValueLayout.JAVA_BYTE, 21, (byte) 4);
        made.refused(Reason.MALFORMED, "whole bytes");
    }

    private void shape(Made made, long... shape) {
        made.dl.set(
                ValueLayout.JAVA_LONG,
                24,
                arena.allocateFrom(ValueLayout.JAVA_LONG, shape).address());
    }

    @Test
    void pinnedMemoryIsTaken() {
        try (PinnedBuffer pinned = PinnedMemory.of(memory).allocate(64)) {
            pinned.segment().fill((byte) 3);
            Made made = new Made();
            made.dl.set(ValueLayout.JAVA_LONG, 0, pinned.segment().address());
            made.dl.set(ValueLayout.JAVA_INT, 8, 3);
            try (DlpackTensor taken = made.taken();
                    DeviceBuffer copy = buffer(60)) {
                copy.copyFrom(taken.buffer());
                byte[] bytes = new byte[60];
                copy.copyTo(MemorySegment.ofArray(bytes));
                assertThat(bytes).containsOnly(3);
            }
        }
    }

    @Test
    void theFormBeforeIsTaken() {
        Made made = new Made();
        MemorySegment old = arena.allocate(64, 16);
        old.copyFrom(made.dl.asSlice(0, 48));
        old.set(ValueLayout.JAVA_LONG, 56, 0);
        try (DlpackTensor taken = Dlpack.takeUnversioned(old.address(), stream)) {
            assertThat(taken.layout()).isEqualTo(MATRIX);
        }
    }

    @Test
    void theDeleterIsCalledAfterTheWorkOfAllStreamsThatUsedTheMemory() {
        Made made = new Made();
        DlpackTensor taken = made.taken();
        gpu.keepBusy(0, stream.handle(), BUSY);
        gpu.keepBusy(0, consumer.handle(), BUSY);
        taken.buffer().slice(0, 20).fill((byte) 1, consumer.handle());
        taken.close();
        assertThat(stream.isIdle()).isTrue();
        assertThat(consumer.isIdle()).isTrue();
        assertThat(made.deletions).hasValue(1);
    }

    @Test
    void aKnownProducersStreamWaitsInsteadOfTheHost() {
        Made made = new Made();
        DlpackTensor taken = made.taken();
        gpu.keepBusy(0, stream.handle(), BUSY);
        taken.closeBefore(consumer);
        assertThat(made.deletions).hasValue(1);
        assertThat(stream.isIdle()).isFalse();
        assertThat(consumer.isIdle()).isFalse();
    }

    @Test
    void aTensorWhoseWorkCantBeWaitedForIsStillOpen() {
        Made made = new Made();
        DlpackTensor taken = made.taken();
        gpu.faults().failOn(DriverCall.STREAM_SYNCHRONIZE, 0, 1, CudaResult.STREAM_CAPTURE_UNSUPPORTED);
        assertThatExceptionOfType(CudaException.class).isThrownBy(taken::close);
        assertThat(taken.buffer().address()).isEqualTo(made.memory);
        assertThat(made.deletions).hasValue(0);
        taken.close();
        assertThat(made.deletions).hasValue(1);
    }

    @Test
    void aTensorGoesBackThoughStreamAndDeviceMemoryAreClosed() {
        Made made = new Made();
        DlpackTensor taken = Dlpack.take(made.address(), consumer);
        gpu.keepBusy(0, consumer.handle(), BUSY);
        memory.close();
        consumer.close();
        taken.close();
        assertThat(made.deletions).hasValue(1);
        assertThat(gpu.streams().isIdle(0, stream.handle())).isTrue();
    }

    @Test
    void anEventIsWaitedForToo() {
        Made made = new Made();
        DlpackTensor taken = made.taken();
        try (CudaEvent event = CudaEvent.open(memory, 0)) {
            gpu.keepBusy(0, consumer.handle(), BUSY);
            event.record(consumer);
            taken.buffer().closeAfter(event.handle());
            assertThat(event.hasPassed()).isTrue();
        }
        assertThat(made.deletions).hasValue(1);
    }
}
