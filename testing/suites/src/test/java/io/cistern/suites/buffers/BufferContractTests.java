package io.cistern.suites.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.Allocator;
import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.Streams;
import io.cistern.errors.UnknownAddressException;
import io.cistern.errors.UnusableStreamException;
import io.cistern.testkit.StreamLatch;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/// Lifetime and misuse of a buffer.
abstract class BufferContractTests extends BufferFixture {
    BufferContractTests(BufferContract suite) {
        super(suite);
    }

    private long alive() {
        return allocator.statistics(DEVICE).liveBlocks();
    }

    @Test
    void aBufferKnowsItsSizeDeviceStreamAndMemory() {
        DeviceBuffer buffer = buffer(1000);
        assertThat(buffer.byteSize()).isEqualTo(1000);
        assertThat(buffer.device()).isEqualTo(DEVICE);
        assertThat(buffer.stream()).isEqualTo(stream.handle());
        assertThat(buffer.memory()).isSameAs(memory);
        assertThat(buffer.address() % 256).isZero();
        assertThat(alive()).isEqualTo(1);
    }

    @Test
    void itsMemoryGoesBackToItsAllocatorWhateverIsCurrent() {
        DeviceBuffer buffer = buffer(1000);
        Allocator other = memory.open("direct");
        memory.currents().set(other);
        buffer.close();
        assertThat(alive()).isZero();
        assertThat(other.statistics(DEVICE).frees()).isZero();
    }

    @Test
    void closingTwiceFreesOnce() {
        DeviceBuffer buffer = buffer(1000);
        buffer.close();
        buffer.close();
        assertThat(allocator.statistics(DEVICE).frees()).isEqualTo(1);
    }

    @Test
    void ofManyClosesAtOnceOneFrees() throws Exception {
        for (int round = 0; round < 50; round++) {
            DeviceBuffer buffer = buffer(1000);
            CountDownLatch start = new CountDownLatch(1);
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                threads.add(Thread.startVirtualThread(() -> {
                    try {
                        start.await();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                    buffer.close();
                }));
            }
            start.countDown();
            for (Thread thread : threads) {
                thread.join();
            }
        }
        assertThat(allocator.statistics(DEVICE).frees()).isEqualTo(50);
        assertThat(alive()).isZero();
    }

    @Test
    void anotherThreadMayUseAndCloseIt() throws Exception {
        DeviceBuffer buffer = buffer(KIB);
        Thread thread = Thread.ofPlatform().start(() -> {
            buffer.fill((byte) 7);
            buffer.close();
        });
        thread.join();
        assertThat(buffer.isClosed()).isTrue();
        assertThat(alive()).isZero();
    }

    @Test
    void aClosedBufferCanNotBeUsed() {
        DeviceBuffer buffer = buffer(1000);
        buffer.close();
        for (Runnable use : List.<Runnable>of(
                buffer::address,
                () -> buffer.withAddress(_ -> {}),
                () -> buffer.slice(0, 10),
                () -> buffer.retainedSlice(0, 10),
                () -> buffer.recordUse(stream.handle()),
                () -> buffer.fill((byte) 0),
                () -> contents(buffer))) {
            assertThatIllegalStateException().isThrownBy(use::run).withMessageContaining("is closed");
        }
    }

    @Test
    void theAddressIsHandedToCode() {
        DeviceBuffer buffer = buffer(1000);
        long[] seen = new long[1];
        buffer.withAddress(address -> seen[0] = address);
        assertThat(seen[0]).isEqualTo(buffer.address());
    }

    @Test
    void aBufferOfNoBytesHasNoAddressAndNeedsNoMemory() {
        DeviceBuffer buffer = buffer(0);
        assertThat(buffer.address()).isZero();
        assertThat(alive()).isZero();
        assertThat(contents(buffer)).isEmpty();
        buffer.close();
        assertThatIllegalStateException().isThrownBy(buffer::address);
    }

    @Test
    void negativeSizesAreRefused() {
        assertThatIllegalArgumentException().isThrownBy(() -> DeviceBuffer.allocate(-1, stream));
    }

    @Test
    void aBlockFreedBehindTheBuffersBackIsReported() {
        DeviceBuffer buffer = buffer(1000);
        memory.free(buffer.address(), stream.handle());
        assertThatExceptionOfType(UnknownAddressException.class).isThrownBy(buffer::close);
        buffer.close();
    }

    @Test
    void itsMemoryIsUsedAgainAfterTheEventItWasClosedWith() {
        CudaStream other = anotherStream();
        StreamLatch latch = latch();
        DeviceBuffer buffer = buffer(MIB);
        buffer.fill((byte) 1);
        stream.synchronize();
        latch.hold(other.handle());
        buffer.fill((byte) 2, other.handle());
        try (CudaEvent event = CudaEvent.open(memory, DEVICE).record(other)) {
            buffer.closeAfter(event.handle());
        }
        DeviceBuffer next = buffer(MIB);
        next.fill((byte) 3);
        latch.release();
        other.synchronize();
        assertThat(contents(next)).containsOnly(3);
        assertThat(alive()).isEqualTo(1);
    }

    @Test
    void aRecordedUseHoldsTheMemoryBack() {
        CudaStream other = anotherStream();
        StreamLatch latch = latch();
        DeviceBuffer buffer = buffer(MIB);
        latch.hold(other.handle());
        buffer.fill((byte) 2, other.handle());
        buffer.close();
        DeviceBuffer next = buffer(MIB);
        latch.release();
        next.fill((byte) 3);
        other.synchronize();
        assertThat(contents(next)).containsOnly(3);
    }

    @Test
    void thePerThreadStreamIsRefusedOnVirtualThreads() throws Exception {
        Throwable[] thrown = new Throwable[1];
        Thread.startVirtualThread(() -> {
                    try {
                        DeviceBuffer.allocate(memory, 1000, DEVICE, Streams.PER_THREAD_DEFAULT)
                                .close();
                    } catch (UnusableStreamException refused) {
                        thrown[0] = refused;
                    }
                })
                .join();
        assertThat(thrown[0]).isInstanceOf(UnusableStreamException.class);
    }

    @Test
    void memoryOfOthersIsMeteredButNotFreed() {
        long address = driver.memory().allocate(DEVICE, 3 * KIB);
        DeviceBuffer foreign = DeviceBuffer.ofForeign(memory, address, 3 * KIB, DEVICE, stream.handle());
        Allocator made = memory.allocators().getLast();
        assertThat(made.name()).isEqualTo("foreign");
        assertThat(made.statistics(DEVICE).requestedBytes()).isEqualTo(3 * KIB);
        foreign.fill((byte) 5);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> DeviceBuffer.ofForeign(memory, address, KIB, DEVICE, stream.handle()));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> DeviceBuffer.ofForeign(memory, address + 8, KIB, DEVICE, stream.handle()));
        foreign.close();
        assertThat(made.statistics(DEVICE).requestedBytes()).isZero();
        driver.copies().fillBytes(DEVICE, address, (byte) 6, 3 * KIB, stream.handle());
        stream.synchronize();
        driver.memory().free(DEVICE, address);
    }

    @Test
    void elementsCountInTheirType() {
        DeviceBuffer buffer = buffer(40);
        buffer.copyFrom(java.nio.FloatBuffer.wrap(new float[] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
        var floats = buffer.elements(ValueLayout.JAVA_FLOAT);
        assertThat(floats.count()).isEqualTo(10);
        assertThat(floats.address(3)).isEqualTo(buffer.address() + 12);
        assertThat(floats.slice(3, 2).toFloats()).containsExactly(3, 4);
        assertThat(buffer.elements(ValueLayout.JAVA_INT).toInts()).startsWith(0, Float.floatToIntBits(1));
        assertThatIllegalArgumentException().isThrownBy(floats::toInts).withMessageContaining("float");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> buffer.slice(0, 39).elements(ValueLayout.JAVA_LONG))
                .withMessageContaining("8 bytes");
        assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> floats.address(10));
    }
}
