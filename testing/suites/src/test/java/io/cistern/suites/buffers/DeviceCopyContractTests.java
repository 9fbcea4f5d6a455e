package io.cistern.suites.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.CudaStream;
import io.cistern.buffers.CopyBatch;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.testkit.StreamLatch;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/// Copies and fills on one device, and between two.
abstract class DeviceCopyContractTests extends BufferFixture {
    DeviceCopyContractTests(BufferContract suite) {
        super(suite);
    }

    @Test
    void oneBufferIsCopiedToAnother() {
        DeviceBuffer source = bufferOf(random(10_000));
        DeviceBuffer target = bufferOf(filled(20_000, 1));
        target.copyFrom(source);
        assertThat(contents(target.slice(0, 10_000))).isEqualTo(random(10_000));
        assertThat(contents(target.slice(10_000, 10_000))).containsOnly(1);
    }

    @Test
    void aCopyWaitsForTheStreamOfItsSource() {
        CudaStream other = anotherStream();
        StreamLatch latch = latch();
        DeviceBuffer source = closedLater(DeviceBuffer.allocate(MIB, other));
        DeviceBuffer target = buffer(MIB);
        latch.hold(other.handle());
        source.fill((byte) 6);
        target.copyFrom(source);
        source.close();
        latch.release();
        assertThat(contents(target)).containsOnly(6);
    }

    @Test
    void rangesThatOverlapAreRefused() {
        DeviceBuffer buffer = bufferOf(random(1000));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> buffer.slice(0, 500).copyFrom(buffer.slice(499, 500)))
                .withMessageContaining("overlap");
        buffer.slice(0, 500).copyFrom(buffer.slice(500, 500));
        assertThat(contents(buffer.slice(0, 500))).isEqualTo(contents(buffer.slice(500, 500)));
    }

    @Test
    void whatDoesNotFitIsNotCopied() {
        DeviceBuffer source = buffer(101);
        DeviceBuffer target = buffer(100);
        assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> target.copyFrom(source));
    }

    @Test
    void rowsAreCopiedFromImageToImage() {
        DeviceBuffer source = bufferOf(random(8 * 50));
        DeviceBuffer target = bufferOf(filled(8 * 70, 1));
        target.rows(3, 70, 40, 8).copyFrom(source.rows(5, 50, 40, 8), stream.handle());
        byte[] all = contents(target);
        for (int row = 0; row < 8; row++) {
            byte[] expected = filled(70, 1);
            System.arraycopy(random(8 * 50), 50 * row + 5, expected, 3, 40);
            assertThat(Arrays.copyOfRange(all, 70 * row, 70 * row + 70)).isEqualTo(expected);
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> target.rows(0, 70, 40, 8).copyFrom(source.rows(0, 50, 41, 8), stream.handle()));
    }

    @Test
    void aFillStaysInsideItsPart() {
        DeviceBuffer buffer = bufferOf(filled(1000, 1));
        buffer.slice(7, 100).fill((byte) 2);
        byte[] expected = filled(1000, 1);
        Arrays.fill(expected, 7, 107, (byte) 2);
        assertThat(contents(buffer)).isEqualTo(expected);
    }

    private CudaStream streamOfAnotherDevice() {
        assumeTrue(driver.devices().count() > 1, "one device alone");
        return closedLater(CudaStream.open(memory, 1));
    }

    @Test
    void aBufferIsCopiedToAnotherDeviceAndBack() {
        CudaStream other = streamOfAnotherDevice();
        byte[] bytes = random(3 * MIB + 1);
        DeviceBuffer here = bufferOf(bytes);
        DeviceBuffer there = closedLater(DeviceBuffer.allocate(bytes.length, other));
        there.copyFrom(here);
        here.fill((byte) 0);
        assertThat(contents(there)).isEqualTo(bytes);
        here.copyFrom(there);
        assertThat(contents(here)).isEqualTo(bytes);
    }

    @Test
    void aCopyBetweenDevicesIsInOrderWithBoth() {
        CudaStream other = streamOfAnotherDevice();
        StreamLatch latch = latch();
        DeviceBuffer here = buffer(MIB);
        DeviceBuffer there = closedLater(DeviceBuffer.allocate(MIB, other));
        there.fill((byte) 1);
        latch.hold(stream.handle());
        here.fill((byte) 2);
        there.copyFrom(here);
        latch.release();
        assertThat(contents(there)).containsOnly(2);
        there.close();
    }

    /// Copies on one device, between devices, from pinned memory, and copies that depend on these, in
    /// one batch; then back.
    @Test
    void aBatchBetweenDevicesIsAsIfInOrder() {
        CudaStream other = streamOfAnotherDevice();
        int count = 40;
        byte[] bytes = random(1000);
        DeviceBuffer[] here = new DeviceBuffer[count];
        DeviceBuffer[] there = new DeviceBuffer[count];
        CopyBatch batch = new CopyBatch();
        try (PinnedBuffer sent = PinnedMemory.of(memory).allocate(bytes.length)) {
            sent.segment().copyFrom(MemorySegment.ofArray(bytes));
            for (int i = 0; i < count; i++) {
                here[i] = bufferOf(filled(bytes.length, 0));
                there[i] = closedLater(DeviceBuffer.allocate(bytes.length, other));
                if (i % 4 == 0) {
                    batch.toDevice(here[i], sent);
                } else {
                    batch.onDevice(here[i], here[i - 1]);
                }
                batch.onDevice(there[i], here[i]);
            }
            batch.submit(stream.handle(), CopyMode.BLOCKING);
        }
        for (int i = 0; i < count; i++) {
            assertThat(contents(there[i])).as("copy %s", i).isEqualTo(bytes);
            here[i].fill((byte) 0);
            batch.onDevice(here[i], there[i]);
        }
        stream.synchronize();
        batch.submit(other.handle(), CopyMode.BLOCKING);
        for (DeviceBuffer buffer : here) {
            assertThat(contents(buffer)).isEqualTo(bytes);
        }
    }

    @Test
    void aBatchToAnotherDeviceHoldsItsTargetBack() {
        CudaStream other = streamOfAnotherDevice();
        StreamLatch latch = latch();
        DeviceBuffer here = bufferOf(filled(MIB, 2));
        DeviceBuffer there = closedLater(DeviceBuffer.allocate(MIB, other));
        there.copyFrom(here); // enables peer access before the stream is held
        other.synchronize();
        latch.hold(stream.handle());
        new CopyBatch().onDevice(there, here).submit(stream.handle(), CopyMode.NON_BLOCKING);
        there.close();
        DeviceBuffer next = closedLater(DeviceBuffer.allocate(MIB, other));
        next.fill((byte) 3);
        latch.release();
        stream.synchronize();
        assertThat(contents(next)).containsOnly(3);
    }

    @Test
    void columnsAreCopiedToOtherColumnsOfTheirMatrix() {
        DeviceBuffer matrix = bufferOf(random(16 * 64));
        for (long width : new long[] {33, 64}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() ->
                            matrix.rows(0, 64, width, 14).copyFrom(matrix.rows(32, 64, width, 14), stream.handle()))
                    .withMessageContaining("overlap");
        }
        matrix.rows(0, 64, 32, 16).copyFrom(matrix.rows(32, 64, 32, 16), stream.handle());
        byte[] before = random(16 * 64);
        byte[] after = contents(matrix);
        for (int row = 0; row < 16 * 64; row += 64) {
            byte[] right = Arrays.copyOfRange(before, row + 32, row + 64);
            assertThat(Arrays.copyOfRange(after, row, row + 32)).isEqualTo(right);
            assertThat(Arrays.copyOfRange(after, row + 32, row + 64)).isEqualTo(right);
        }
    }
}
