package io.cistern.program;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.Allocator;
import io.cistern.CudaEvent;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.CopyOptions;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.errors.UnusableStreamException;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.leaks.Leaks;
import io.cistern.jvm.LogOf;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Buffers that are watched, limited, refused by the driver, or copied from memory that is not pinned.
///
/// In a package outside the framework, as programs are: reports name the first frame of other code.
class BufferLeakTests {
    @RegisterExtension
    private final LogOf log = new LogOf("io.cistern.copies");

    @RegisterExtension
    private final LogOf leaks = new LogOf(Leaks.class.getName());

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of()))
            .limitBytes(1 << 20)
            .leakLevel(LeakLevel.ALL)
            .open();
    private final Allocator direct = memory.setCurrent("direct");

    BufferLeakTests() {
        CopyOptions.of(memory).reportPageableCopies(true);
    }

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    @Test
    void aWatchedBufferHandsItsBlockToItsRetainedSlices() {
        DeviceBuffer whole = DeviceBuffer.allocate(memory, 1000, 0, 0);
        DeviceBuffer part = whole.retainedSlice(0, 500);
        whole.close();
        assertThat(memory.liveBlocks()).hasSize(1);
        part.close();
        assertThat(memory.liveBlocks()).isEmpty();
        assertThat(direct.statistics(0).frees()).isEqualTo(1);
    }

    @Test
    void aBlockThatTheBufferLostIsWatchedNoMore() {
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, 1000, 0, 0);
        memory.free(buffer.address(), 0);
        assertThatExceptionOfType(UnknownAddressException.class).isThrownBy(buffer::close);
        assertThat(buffer.isClosed()).isTrue();
    }

    @Test
    void aBlockThatACaptureKeepsIsWatchedNoMore() throws Exception {
        long address = closedInACapture();
        GraphMemory.collect(memory);
        try (DeviceBuffer next = DeviceBuffer.allocate(memory, 1000, 0, 0)) {
            assertThat(next.address()).isEqualTo(address);
            for (long byteSize : List.of(4321L, 5432L)) { // what was dropped before the second is found before it
                DeviceBuffer.allocate(memory, byteSize, 0, 0);
                awaitReports(byteSize == 4321L ? 1 : 2);
            }
            assertThat(leaks.messages()).noneMatch(report -> report.contains("1000 bytes"));
        }
        memory.liveBlocks().forEach(block -> memory.free(block.address(), 0));
    }

    private long closedInACapture() {
        long stream = gpu.streams().create(0);
        long other = gpu.streams().create(0);
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, 1000, 0, stream);
        long address = buffer.address();
        try (GraphCapture _ = GraphCapture.begin(memory, 0, other, CaptureMode.RELAXED)) {
            gpu.graphs().beginCapture(0, stream, CaptureMode.RELAXED);
            assertThatExceptionOfType(UnusableStreamException.class).isThrownBy(buffer::close);
            gpu.graphs().destroy(0, gpu.graphs().endCapture(0, stream));
        }
        return address;
    }

    /// Ends the block of a buffer, but not the watch.
    private enum End {
        CLOSE_THROWS,
        CLOSE_AFTER_THROWS,
        FREED_BY_ADDRESS;

        void end(DeviceMemory memory, DeviceBuffer buffer) {
            switch (this) {
                case CLOSE_THROWS -> assertThatIllegalStateException().isThrownBy(buffer::close);
                case CLOSE_AFTER_THROWS -> {
                    try (CudaEvent event = CudaEvent.open(memory, 0)) {
                        assertThatIllegalStateException().isThrownBy(() -> buffer.closeAfter(event));
                    }
                }
                case FREED_BY_ADDRESS ->
                    assertThatIllegalStateException().isThrownBy(() -> memory.free(buffer.address(), 0));
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void aBlockThatWasFreedIsNotReported(End end) throws Exception {
        Allocator plain = memory.open("direct");
        memory.currents().set(memory.open(OpenOptions.around("complaining", plain, Complaining::new)));
        long address = ended(end);
        memory.currents().set(plain);
        try (DeviceBuffer stranger = DeviceBuffer.allocate(memory, 1000, 0, 0)) {
            assertThat(stranger.address()).isEqualTo(address);
            for (long byteSize : List.of(4321L, 5432L)) { // what was dropped before the second is found before it
                DeviceBuffer.allocate(memory, byteSize, 0, 0);
                awaitReports(byteSize == 4321L ? 1 : 2);
            }
            assertThat(leaks.messages()).hasSize(2).noneMatch(report -> report.contains("1000 bytes"));
            assertThat(memory.liveBlocks())
                    .filteredOn(block -> block.address() == address)
                    .noneMatch(LiveBlock::unreachable);
        }
        memory.liveBlocks().forEach(block -> memory.free(block.address(), 0));
    }

    private long ended(End end) {
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, 1000, 0, 0);
        long address = buffer.address();
        end.end(memory, buffer);
        return address;
    }

    /// Frees, and throws.
    private static final class Complaining extends AllocatorAdaptor {
        Complaining(DeviceAllocator upstream) {
            super(upstream);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            super.free(address, byteSize, device, stream);
            throw new IllegalStateException("freed, but");
        }
    }

    private void awaitReports(int count) throws InterruptedException {
        for (int tries = 0; tries < 2000 && leaks.messages().size() < count; tries++) {
            System.gc();
            Thread.sleep(5);
        }
    }

    @Test
    void aBufferStaysOpenIfTheDriverRefusesTheEvent() {
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, 1000, 0, 0);
        try (CudaEvent event = CudaEvent.open(memory, 0)) {
            gpu.faults().failOn(DriverCall.STREAM_WAIT_EVENT, 0, 1, CudaResult.INVALID_HANDLE);
            assertThatExceptionOfType(CudaException.class).isThrownBy(() -> buffer.closeAfter(event.handle()));
            assertThat(buffer.isClosed()).isFalse();
            buffer.closeAfter(event.handle());
        }
        assertThat(memory.liveBlocks()).isEmpty();
    }

    @Test
    void whatIsForeignCountsAgainstTheLimit() {
        long address = gpu.memory().allocate(0, 2 << 20);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> DeviceBuffer.ofForeign(memory, address, 2 << 20, 0, 0));
        try (DeviceBuffer part = DeviceBuffer.ofForeign(memory, address, 1 << 20, 0, 0)) {
            assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                    .isThrownBy(() -> DeviceBuffer.allocate(memory, 1, 0, 0));
            assertThat(part.address()).isEqualTo(address);
        }
        gpu.memory().free(0, address);
        assertThat(gpu.misuses()).isEmpty();
    }

    @Test
    void foreignMemoryIsWrappedThoughAllAllocatorsWereClosed() {
        long address = gpu.memory().allocate(0, 1 << 20);
        try (DeviceBuffer first = DeviceBuffer.ofForeign(memory, address, 1000, 0, 0)) {
            memory.allocators().forEach(Allocator::close);
            try (DeviceBuffer second = DeviceBuffer.ofForeign(memory, address + 4096, 1000, 0, 0)) {
                assertThat(second.allocator().isClosed()).isFalse();
            }
            assertThat(first.address()).isEqualTo(address);
        }
        assertThat(memory.liveBlocks()).isEmpty();
        gpu.memory().free(0, address);
    }

    @Test
    void aCopyFromMemoryThatIsNotPinnedIsReportedOnceAPlace() {
        try (Arena arena = Arena.ofConfined();
                DeviceBuffer buffer = DeviceBuffer.allocate(memory, 1000, 0, 0);
                PinnedBuffer pinned = PinnedMemory.of(memory).allocate(1000)) {
            MemorySegment pageable = arena.allocate(1000);
            for (int i = 0; i < 3; i++) {
                buffer.copyFrom(pageable, 0, CopyMode.NON_BLOCKING);
            }
            buffer.copyFrom(pageable);
            buffer.copyFrom(pinned, 0, CopyMode.NON_BLOCKING);
            assertThat(log.messages())
                    .singleElement()
                    .asString()
                    .startsWith("a non-blocking copy of 1000 bytes waits for the driver")
                    .contains("BufferLeakTests");
        }
    }

    @Test
    void whenTheMemoryIsClosedPinnedMemoryGoesBackAsItIsClosed() {
        PinnedBuffer kept = PinnedMemory.of(memory).allocate(4096);
        PinnedMemory.of(memory).allocate(4096).close();
        memory.close();
        assertThat(PinnedMemory.of(memory).statistics()).containsEntry("allocations.current", 1L);
        kept.close();
        assertThat(PinnedMemory.of(memory).statistics()).containsEntry("allocations.current", 0L);
    }

    @Test
    void aBufferThatWasDroppedIsReportedWithItsSiteAndStaysAllocated() throws Exception {
        DeviceBuffer kept = DeviceBuffer.allocate(memory, 300, 0, 0);
        DeviceBuffer.allocate(memory, 4321, 0, 0);
        DeviceBuffer.allocate(memory, 500, 0, 0).close();
        awaitReports(1);
        assertThat(leaks.messages())
                .singleElement()
                .asString()
                .contains("dropped without being closed")
                .contains("4321 bytes")
                .contains("BufferLeakTests.aBufferThatWasDropped");
        assertThat(memory.liveBlocks())
                .filteredOn(LiveBlock::unreachable)
                .singleElement()
                .returns(4321L, LiveBlock::byteSize);
        Reference.reachabilityFence(kept);
        kept.close();
        memory.liveBlocks().forEach(block -> memory.free(block.address(), 0));
    }
}
