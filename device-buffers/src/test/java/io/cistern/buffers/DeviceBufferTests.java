package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CisternException;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.errors.UnusableStreamException;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// When and how often a buffer ends.
class DeviceBufferTests {
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(1L << 30).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final CountingAllocator counting = new CountingAllocator();
    private final Allocator allocator = memory.open(OpenOptions.made("counting", counting));
    private final long stream = gpu.streams().create(0);
    private final long reader = gpu.streams().create(0);

    DeviceBufferTests() {
        memory.currents().set(allocator);
    }

    @AfterEach
    void nothingIsLeft() {
        assertThat(allocator.statistics(0).liveBlocks()).isZero();
        memory.close();
        assertThat(allocator.isDrained()).isTrue();
        gpu.close();
    }

    /// What a virtual thread gets for doing something, or nothing.
    private static List<Throwable> onVirtualThread(Runnable action) throws InterruptedException {
        List<Throwable> thrown = new ArrayList<>();
        Thread.ofVirtual()
                .start(() -> {
                    try {
                        action.run();
                    } catch (CisternException failure) {
                        thrown.add(failure);
                    }
                })
                .join();
        return thrown;
    }

    @Test
    void aBufferEndsOnceHoweverOftenItIsClosed() {
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, 5000, 0, stream);
        assertThat(buffer.address()).isNotZero();
        buffer.close();
        buffer.close();
        assertThat(counting.frees).isOne();
        assertThatIllegalStateException()
                .isThrownBy(buffer::address)
                .withMessageContaining("5000 bytes")
                .withMessageContaining("is closed");
    }

    @Test
    void aBufferOfNoBytesHasNoMemory() {
        try (DeviceBuffer buffer = DeviceBuffer.allocate(memory, 0, 0, stream)) {
            assertThat(buffer.address()).isZero();
        }
    }

    @Test
    void aBufferWhoseEventIsRefusedIsStillOpen() {
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, 1000, 0, stream);
        long address = buffer.address();
        assertThatExceptionOfType(CudaException.class).isThrownBy(() -> buffer.closeAfter(12345));
        assertThat(buffer.address()).isEqualTo(address);
        assertThat(counting.frees).isZero();
        buffer.close();
        assertThat(counting.frees).isOne();
    }

    @Test
    void aBufferEndsOnceWhicheverWayItIsClosed() {
        long event = gpu.events().create(0);
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, 1000, 0, stream);
        buffer.recordUse(reader);
        buffer.closeAfter(event);
        buffer.closeAfter(event);
        buffer.close();
        assertThat(counting.frees).isOne();
        assertThatIllegalStateException().isThrownBy(() -> buffer.recordUse(reader));
        gpu.events().destroy(0, event);
    }

    @Test
    void aBufferOnItStaysOpenOnAVirtualThreadAndMayEndElsewhere() throws InterruptedException {
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, 1000, 0, Streams.PER_THREAD_DEFAULT);
        assertThat(onVirtualThread(buffer::close)).singleElement().isInstanceOf(UnusableStreamException.class);
        assertThat(buffer.address()).isNotZero();
        assertThat(counting.frees).isZero();
        buffer.close();
        assertThat(counting.frees).isOne();
    }

    @Test
    void aBufferOnItMayEndAfterAnEventOnAVirtualThread() throws InterruptedException {
        long event = gpu.events().create(0);
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, 1000, 0, Streams.PER_THREAD_DEFAULT);
        assertThat(onVirtualThread(() -> buffer.closeAfter(event))).isEmpty();
        assertThat(counting.frees).isOne();
        gpu.events().destroy(0, event);
    }

    /// Closes a buffer of a stream that is in a capture which nobody announced.
    private void assertThatItIsClosedInACapture(DeviceBuffer last) {
        try (GraphCapture _ = GraphCapture.begin(memory, 0, reader, CaptureMode.RELAXED)) {
            gpu.graphs().beginCapture(0, stream, CaptureMode.RELAXED);
            assertThatExceptionOfType(UnusableStreamException.class).isThrownBy(last::close);
            assertThat(last.isClosed()).isTrue();
            gpu.graphs().destroy(0, gpu.graphs().endCapture(0, stream));
        }
        last.close();
        GraphMemory.collect(memory);
        assertThat(counting.frees).isOne();
    }

    @Test
    void aBufferIsClosedThoughACaptureKeepsItsBlock() {
        assertThatItIsClosedInACapture(DeviceBuffer.allocate(memory, 1000, 0, stream));
    }

    @Test
    void theLastHolderIsClosedThoughACaptureKeepsTheBlock() {
        DeviceBuffer whole = DeviceBuffer.allocate(memory, 1000, 0, stream);
        DeviceBuffer part = whole.retainedSlice(0, 10);
        whole.close();
        assertThatItIsClosedInACapture(part);
    }

    @Test
    void aBufferWhoseOwnerFailsIsStillOpen() {
        AtomicInteger calls = new AtomicInteger();
        DeviceBuffer buffer = DeviceBuffer.ofBorrowed(memory, 4096, 10, 0, stream, (_, _) -> {
            if (calls.getAndIncrement() == 0) {
                throw new StackOverflowError("of the owner");
            }
        });
        assertThatExceptionOfType(StackOverflowError.class).isThrownBy(buffer::close);
        assertThat(buffer.isClosed()).isFalse();
        buffer.close();
        assertThat(calls).hasValue(2);
    }

    /// Counts frees.
    private static final class CountingAllocator implements DeviceAllocator {
        private int allocations;
        private int frees;

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return (1L << 20) + (1L << 16) * ++allocations;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            frees++;
        }
    }
}
