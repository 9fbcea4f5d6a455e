package io.cistern.suites.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.CudaStream;
import io.cistern.buffers.CopyBatch;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.DriverCall;
import io.cistern.graph.GraphCapture;
import io.cistern.testkit.StreamLatch;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/// Copies between host and device.
abstract class HostCopyContractTests extends BufferFixture {
    /// Sizes around the pieces in which heap memory is copied, and around the size up to which
    /// `memcpy` moves the bytes.
    private static final int[] SIZES = {
        1, 3, 4096, MIB - 1, MIB, MIB + 1, 2 * MIB, 2 * MIB + 1, 3 * MIB + 5, 9 * MIB / 2, 5 * MIB, 13 * MIB + 1
    };

    HostCopyContractTests(BufferContract suite) {
        super(suite);
    }

    @Test
    void arraysGoThereAndBack() {
        for (int byteSize : SIZES) {
            byte[] bytes = random(byteSize);
            DeviceBuffer buffer = bufferOf(bytes);
            assertThat(contents(buffer)).as("%s bytes", byteSize).isEqualTo(bytes);
            buffer.close();
        }
    }

    /// The two lengths give sizes on both sides of 2 MiB for each type.
    @Test
    void arraysOfAllTypesGoThereAndBackFromAnyOffset() {
        for (int elements : new int[] {1001, 3 * MIB + 1}) {
            thereAndBack(MemorySegment.ofArray(new byte[elements]));
            thereAndBack(MemorySegment.ofArray(new short[elements]));
            thereAndBack(MemorySegment.ofArray(new char[elements]));
            thereAndBack(MemorySegment.ofArray(new int[elements]));
            thereAndBack(MemorySegment.ofArray(new float[elements]));
            thereAndBack(MemorySegment.ofArray(new long[elements]));
            thereAndBack(MemorySegment.ofArray(new double[elements]));
        }
    }

    private void thereAndBack(MemorySegment array) {
        byte[] bytes = random(Math.toIntExact(array.byteSize()));
        array.copyFrom(MemorySegment.ofArray(bytes));
        for (int offset : new int[] {0, 1, 13}) {
            MemorySegment sent = array.asSlice(offset, array.byteSize() - offset - 3);
            try (DeviceBuffer buffer = DeviceBuffer.allocate(sent.byteSize(), stream)) {
                buffer.copyFrom(sent);
                sent.fill((byte) 0);
                buffer.copyTo(sent);
            }
            assertThat(array.mismatch(MemorySegment.ofArray(bytes)))
                    .as("%s from %d", array, offset)
                    .isEqualTo(-1);
        }
    }

    @Test
    void nativeMemoryGoesThereAndBack() {
        for (int byteSize : SIZES) {
            try (Arena arena = Arena.ofConfined();
                    DeviceBuffer buffer = DeviceBuffer.allocate(byteSize, stream)) {
                MemorySegment host = arena.allocateFrom(ValueLayout.JAVA_BYTE, random(byteSize));
                buffer.copyFrom(host);
                host.fill((byte) 0);
                buffer.copyTo(host);
                assertThat(host.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(random(byteSize));
            }
        }
    }

    @Test
    void buffersOfTheJdkAreCopiedFromTheirPositionOn() {
        ByteBuffer bytes = ByteBuffer.allocateDirect(100);
        bytes.put(random(100)).position(20).limit(80);
        DeviceBuffer buffer = buffer(60);
        buffer.copyFrom(bytes);
        assertThat(contents(buffer)).isEqualTo(Arrays.copyOfRange(random(100), 20, 80));
        assertThat(bytes.position()).isEqualTo(20);
        ByteBuffer back = ByteBuffer.allocate(60);
        buffer.copyTo(back);
        assertThat(back.array()).isEqualTo(contents(buffer));
    }

    @Test
    void pinnedMemoryIsCopiedInStreamOrderAndUsedAgainAfterwards() {
        StreamLatch latch = latch();
        DeviceBuffer buffer = buffer(MIB);
        PinnedBuffer sent = PinnedMemory.of(memory).allocate(MIB);
        PinnedMemory.of(memory).allocate(MIB).close(); // so that nothing is pinned while the stream is held
        sent.segment().fill((byte) 1);
        latch.hold(stream.handle());
        buffer.copyFrom(sent, stream.handle(), CopyMode.NON_BLOCKING);
        sent.close();
        try (PinnedBuffer other = PinnedMemory.of(memory).allocate(MIB)) {
            other.segment().fill((byte) 2); // not the memory that is still to be copied
            latch.release();
            assertThat(contents(buffer)).containsOnly(1);
            buffer.copyTo(other, stream.handle(), CopyMode.BLOCKING);
            assertThat(other.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(1);
        }
    }

    /// Copies that many bytes of an array first, so that later copies pin nothing while a stream is held.
    private void copyBefore(int byteSize) {
        bufferOf(filled(byteSize, 9)).close();
    }

    @Test
    void anArrayMayChangeOnceTheCopyReturned() {
        StreamLatch latch = latch();
        byte[] bytes = filled(MIB / 2, 1);
        DeviceBuffer buffer = buffer(MIB / 2);
        copyBefore(MIB / 2);
        latch.hold(stream.handle());
        buffer.copyFrom(MemorySegment.ofArray(bytes), stream.handle(), CopyMode.NON_BLOCKING);
        Arrays.fill(bytes, (byte) 2);
        latch.release();
        assertThat(contents(buffer)).containsOnly(1);
    }

    @Test
    void anArrayCopyDoesNotWaitForThatOfAnotherStream() {
        CudaStream other = anotherStream();
        StreamLatch latch = latch();
        DeviceBuffer first = buffer(MIB / 4);
        DeviceBuffer second = closedLater(DeviceBuffer.allocate(MIB / 4, other));
        copyBefore(MIB / 2); // two pieces
        latch.hold(stream.handle());
        first.copyFrom(MemorySegment.ofArray(filled(MIB / 4, 1)), stream.handle(), CopyMode.NON_BLOCKING);
        second.copyFrom(MemorySegment.ofArray(filled(MIB / 4, 2)), other.handle(), CopyMode.BLOCKING);
        latch.release();
        assertThat(contents(first)).containsOnly(1);
        assertThat(contents(second)).containsOnly(2);
    }

    @Test
    void anArrayCopyUsesWhatTheOneBeforeItMade() {
        DeviceBuffer buffer = buffer(3 * MIB);
        MemorySegment array = MemorySegment.ofArray(random(3 * MIB));
        buffer.copyFrom(array);
        long made = calls(DriverCall.EVENT_CREATE) + calls(DriverCall.MEM_HOST_ALLOC);
        buffer.copyFrom(array);
        assertThat(calls(DriverCall.EVENT_CREATE) + calls(DriverCall.MEM_HOST_ALLOC))
                .isEqualTo(made);
    }

    /// A blocking copy waits for the stream, which makes events unnecessary.
    @Test
    void aSmallArrayThatIsWaitedForNeedsNoEvents() {
        copyBefore(4096);
        DeviceBuffer buffer = buffer(4096);
        long before = calls(DriverCall.EVENT_RECORD) + calls(DriverCall.EVENT_QUERY);
        buffer.copyFrom(MemorySegment.ofArray(random(4096)));
        assertThat(calls(DriverCall.EVENT_RECORD) + calls(DriverCall.EVENT_QUERY))
                .isEqualTo(before);
        assertThat(contents(buffer)).isEqualTo(random(4096));
    }

    private long calls(DriverCall call) {
        return driver.calls().of(call);
    }

    /// The graph would read staging memory when it is launched, long after the copy.
    @Test
    void anArrayIsNotCopiedInACapture() {
        DeviceBuffer buffer = bufferOf(filled(100, 1));
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, stream.handle(), CaptureMode.THREAD_LOCAL)) {
            MemorySegment array = MemorySegment.ofArray(filled(100, 2));
            assertThatIllegalStateException()
                    .isThrownBy(() -> buffer.copyFrom(array, stream.handle(), CopyMode.NON_BLOCKING))
                    .withMessageContaining("being captured");
            assertThatIllegalStateException()
                    .isThrownBy(
                            () -> buffer.rows(0, 10, 5, 2).copyFrom(array, 10, stream.handle(), CopyMode.NON_BLOCKING))
                    .withMessageContaining("being captured");
        }
        assertThat(contents(buffer)).containsOnly(1);
    }

    @Test
    void partsOfABufferAreCopied() {
        DeviceBuffer buffer = bufferOf(filled(100, 1));
        buffer.slice(10, 20).copyFrom(MemorySegment.ofArray(filled(20, 2)));
        buffer.copyFrom(MemorySegment.ofArray(filled(5, 3)));
        byte[] expected = filled(100, 1);
        Arrays.fill(expected, 10, 30, (byte) 2);
        Arrays.fill(expected, 0, 5, (byte) 3);
        assertThat(contents(buffer)).isEqualTo(expected);
    }

    @Test
    void whatDoesNotFitIsNotCopied() {
        DeviceBuffer buffer = bufferOf(filled(100, 1));
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> buffer.copyFrom(MemorySegment.ofArray(new byte[101])));
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> buffer.copyTo(MemorySegment.ofArray(new byte[99])));
        assertThat(contents(buffer)).containsOnly(1);
    }

    @Test
    void hostMemoryThatCanNotBeUsedIsRefused() throws Exception {
        DeviceBuffer buffer = buffer(8);
        long handle = stream.handle();
        assertThatIllegalArgumentException()
                .isThrownBy(
                        () -> buffer.copyTo(MemorySegment.ofArray(new byte[8]).asReadOnly()))
                .withMessageContaining("read-only");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> buffer.copyTo(MemorySegment.ofArray(new byte[8]), handle, CopyMode.NON_BLOCKING))
                .withMessageContaining("PinnedBuffer");
        MemorySegment ended;
        try (Arena arena = Arena.ofConfined()) {
            ended = arena.allocate(8);
            Throwable[] thrown = new Throwable[1];
            Thread.ofPlatform()
                    .start(() -> {
                        try {
                            buffer.copyFrom(ended);
                        } catch (WrongThreadException wrong) {
                            thrown[0] = wrong;
                        }
                    })
                    .join();
            assertThat(thrown[0]).isInstanceOf(WrongThreadException.class);
        }
        assertThatIllegalStateException().isThrownBy(() -> buffer.copyFrom(ended));
    }

    @Test
    void rowsAreCopiedFromAndToAnyHostMemory() {
        byte[] image = random(10 * 100);
        DeviceBuffer buffer = bufferOf(filled(10 * 64, 9));
        var window = buffer.rows(2, 64, 30, 10);
        window.copyFrom(MemorySegment.ofArray(image).asSlice(5), 100, stream.handle(), CopyMode.NON_BLOCKING);
        byte[] all = contents(buffer);
        byte[] back = filled(10 * 40, 0);
        window.copyTo(MemorySegment.ofArray(back), 40, stream.handle());
        for (int row = 0; row < 10; row++) {
            byte[] sent = Arrays.copyOfRange(image, 100 * row + 5, 100 * row + 35);
            byte[] expected = filled(64, 9);
            System.arraycopy(sent, 0, expected, 2, 30);
            assertThat(Arrays.copyOfRange(all, 64 * row, 64 * row + 64)).isEqualTo(expected);
            assertThat(Arrays.copyOfRange(back, 40 * row, 40 * row + 30)).isEqualTo(sent);
            assertThat(Arrays.copyOfRange(back, 40 * row + 30, 40 * row + 40)).containsOnly(0);
        }
        try (PinnedBuffer pinned = PinnedMemory.of(memory).allocate(300)) {
            window.copyTo(pinned, 30, stream.handle(), CopyMode.BLOCKING);
            assertThat(pinned.segment().asSlice(0, 30).toArray(ValueLayout.JAVA_BYTE))
                    .isEqualTo(Arrays.copyOfRange(image, 5, 35));
            window.copyFrom(pinned, 30, stream.handle(), CopyMode.BLOCKING);
        }
        assertThat(contents(buffer)).isEqualTo(all);
    }

    @Test
    void rowsLieInsideAndApart() {
        DeviceBuffer buffer = buffer(100);
        assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> buffer.rows(0, 20, 20, 6));
        assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> buffer.rows(1, 20, 20, 5));
        assertThatIllegalArgumentException().isThrownBy(() -> buffer.rows(0, 19, 20, 2));
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> buffer.rows(0, 20, 10, 5)
                        .copyFrom(MemorySegment.ofArray(new byte[49]), 10, stream.handle(), CopyMode.BLOCKING));
    }

    @Test
    void aBatchIsEnqueuedWholeOrNotAtAll() {
        DeviceBuffer one = bufferOf(filled(100, 1));
        DeviceBuffer two = bufferOf(filled(100, 2));
        byte[] back = new byte[100];
        CopyBatch batch = new CopyBatch()
                .toDevice(one, MemorySegment.ofArray(filled(100, 5)))
                .onDevice(two, one)
                .toHost(MemorySegment.ofArray(back), two);
        assertThatIllegalArgumentException().isThrownBy(() -> batch.submit(stream.handle(), CopyMode.NON_BLOCKING));
        assertThat(contents(one)).containsOnly(1);
        batch.submit(stream.handle(), CopyMode.BLOCKING);
        assertThat(back).containsOnly(5);
        assertThat(batch.count()).isZero();
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> batch.onDevice(one.slice(0, 50), two));
    }

    /// Copies that depend on each other, between some that don't, from pinned memory that is closed at once.
    @Test
    void aBatchIsAsIfInOrder() {
        DeviceBuffer[] buffers = new DeviceBuffer[100];
        CopyBatch batch = new CopyBatch();
        try (PinnedBuffer sent = PinnedMemory.of(memory).allocate(1000);
                PinnedBuffer received = PinnedMemory.of(memory).allocate(1000)) {
            sent.segment().copyFrom(MemorySegment.ofArray(filled(1000, 3)));
            for (int i = 0; i < buffers.length; i++) {
                buffers[i] = buffer(1000);
                if (i % 10 == 0) {
                    batch.toDevice(buffers[i], sent);
                } else {
                    batch.onDevice(buffers[i], buffers[i - 1 - i % 3 / 2]);
                }
            }
            batch.toHost(received, buffers[buffers.length - 1]).submit(stream.handle(), CopyMode.BLOCKING);
            assertThat(received.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(3);
        }
        for (DeviceBuffer buffer : buffers) {
            assertThat(contents(buffer)).containsOnly(3);
        }
    }

    @Test
    void aBatchNeedsFewerCallsThanItHasCopies() {
        assumeTrue(memory.driver().copies().takesBatches(), "this driver has no batches of copies");
        CopyBatch batch = new CopyBatch();
        for (int i = 0; i < 50; i++) {
            batch.onDevice(buffer(1000), bufferOf(filled(1000, i)));
        }
        long before = memory.driver().calls().of(DriverCall.MEMCPY_BATCH_ASYNC);
        batch.submit(stream.handle(), CopyMode.BLOCKING);
        assertThat(memory.driver().calls().of(DriverCall.MEMCPY_BATCH_ASYNC)).isEqualTo(before + 1);
    }

    @Test
    void aCopyOnAnotherStreamHoldsTheMemoryBack() {
        CudaStream other = anotherStream();
        StreamLatch latch = latch();
        DeviceBuffer buffer = bufferOf(filled(MIB, 1));
        try (PinnedBuffer pinned = PinnedMemory.of(memory).allocate(MIB)) {
            pinned.segment().fill((byte) 2);
            latch.hold(other.handle());
            buffer.copyFrom(pinned, other.handle(), CopyMode.NON_BLOCKING);
        }
        buffer.close();
        DeviceBuffer next = buffer(MIB);
        latch.release();
        next.fill((byte) 3);
        other.synchronize();
        assertThat(contents(next)).containsOnly(3);
    }
}
