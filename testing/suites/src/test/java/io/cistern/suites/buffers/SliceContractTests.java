package io.cistern.suites.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.testkit.StreamLatch;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Parts of buffers: views, and slices that keep the memory alive.
abstract class SliceContractTests extends BufferFixture {
    SliceContractTests(BufferContract suite) {
        super(suite);
    }

    private long alive() {
        return allocator.statistics(DEVICE).liveBlocks();
    }

    @Test
    void aSliceIsAPartOfTheContents() {
        DeviceBuffer whole = bufferOf(random(1000));
        byte[] bytes = contents(whole);
        DeviceBuffer slice = whole.slice(300, 200);
        assertThat(slice.address()).isEqualTo(whole.address() + 300);
        assertThat(contents(slice)).isEqualTo(java.util.Arrays.copyOfRange(bytes, 300, 500));
        slice.slice(10, 5).fill((byte) 9);
        System.arraycopy(filled(5, 9), 0, bytes, 310, 5);
        assertThat(contents(whole)).isEqualTo(bytes);
    }

    @Test
    void aSliceEndsWithItsParent() {
        DeviceBuffer whole = buffer(1000);
        DeviceBuffer ofSlice = whole.slice(300, 200).slice(100, 50);
        whole.close();
        assertThat(ofSlice.isClosed()).isTrue();
        assertThatIllegalStateException()
                .isThrownBy(ofSlice::address)
                .withMessageContaining("the buffer that it is a slice of is closed");
        ofSlice.close();
    }

    @Test
    void closingASliceEndsItAlone() {
        DeviceBuffer whole = buffer(1000);
        DeviceBuffer slice = whole.slice(300, 200);
        slice.close();
        assertThatIllegalStateException().isThrownBy(slice::address);
        assertThat(whole.isClosed()).isFalse();
        assertThat(alive()).isEqualTo(1);
    }

    @Test
    void aSliceLiesInside() {
        DeviceBuffer whole = buffer(1000);
        for (Runnable outside : List.<Runnable>of(
                () -> whole.slice(0, 1001),
                () -> whole.slice(-1, 10),
                () -> whole.slice(1000, 1),
                () -> whole.slice(Long.MAX_VALUE, Long.MAX_VALUE),
                () -> whole.retainedSlice(500, 501))) {
            assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(outside::run);
        }
        assertThat(whole.slice(1000, 0).address()).isZero();
    }

    @Test
    void aRetainedSliceKeepsTheMemoryAlive() {
        DeviceBuffer whole = bufferOf(filled(1000, 4));
        DeviceBuffer first = whole.retainedSlice(0, 500);
        DeviceBuffer second = first.retainedSlice(256, 100);
        whole.close();
        assertThatIllegalStateException().isThrownBy(whole::address);
        first.close();
        assertThat(alive()).isEqualTo(1);
        assertThat(contents(second)).containsOnly(4);
        second.close();
        second.close();
        assertThat(alive()).isZero();
        assertThat(allocator.statistics(DEVICE).frees()).isEqualTo(1);
    }

    @Test
    void whatAViewDoesNotOwnItCanNotKeep() {
        DeviceBuffer view = buffer(1000).slice(0, 500);
        assertThatExceptionOfType(UnsupportedOperationException.class).isThrownBy(() -> view.retainedSlice(0, 10));
        assertThat(view.isClosed()).isFalse();
    }

    @Test
    void retainedSlicesRacingWithClosesFreeOnce() throws Exception {
        for (int round = 0; round < 200; round++) {
            DeviceBuffer whole = buffer(1000);
            Thread slicing = Thread.startVirtualThread(() -> {
                try {
                    whole.retainedSlice(0, 10).close();
                } catch (IllegalStateException closedBefore) {
                    // either is right
                }
            });
            whole.close();
            slicing.join();
        }
        assertThat(allocator.statistics(DEVICE).frees()).isEqualTo(200);
        assertThat(alive()).isZero();
    }

    @Test
    void theBlockWaitsForTheEventOfEachHolder() {
        CudaStream other = anotherStream();
        StreamLatch latch = latch();
        DeviceBuffer whole = buffer(MIB);
        DeviceBuffer half = whole.retainedSlice(0, MIB / 2);
        latch.hold(other.handle());
        driver.copies().fillBytes(DEVICE, half.address(), (byte) 2, half.byteSize(), other.handle());
        try (CudaEvent event = CudaEvent.open(memory, DEVICE).record(other)) {
            half.closeAfter(event.handle());
        }
        whole.close();
        DeviceBuffer next = buffer(MIB);
        latch.release();
        next.fill((byte) 3);
        other.synchronize();
        assertThat(contents(next)).containsOnly(3);
    }

    @Test
    void theBlockWaitsForTheStreamOfEachHolder() {
        CudaStream other = anotherStream();
        StreamLatch latch = latch();
        DeviceBuffer whole = buffer(MIB);
        DeviceBuffer moved = whole.retainedSlice(0, MIB / 2).moveToStream(other.handle());
        latch.hold(other.handle());
        moved.fill((byte) 2);
        moved.close();
        whole.close();
        DeviceBuffer next = buffer(MIB);
        next.fill((byte) 3);
        latch.release();
        other.synchronize();
        assertThat(contents(next)).containsOnly(3);
    }
}
