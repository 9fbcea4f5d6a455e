package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.Streams;
import io.cistern.errors.UnusableStreamException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.simulated.SimulatedGpu;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Buffers move while a stream still has work for them: each move comes after that work, and the next use after the
/// move. The allocator gives no stream memory of another one, which would order the two.
final class SpillStreamsTests {
    private static final long SIZE = 40 << 20;
    private static final long BUSY_NANOS = 1_000_000_000;

    @TempDir
    private Path folder;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(512 << 20).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(SmallGpu.catalog()).open();
    private final long first = gpu.streams().create(0);
    private final long second = gpu.streams().create(0);
    private final long third = gpu.streams().create(0);

    @AfterEach
    void nothingWasMisused() {
        assertThat(gpu.misuses()).isEmpty();
        memory.close();
        gpu.close();
    }

    private SpillStore open(long hostBytes) {
        memory.setCurrent("caching:reuse=never");
        return SpillStore.open(memory, hostBytes, folder);
    }

    /// Fills memory after a second of other work.
    private void fillLate(long address, int mark, long stream) {
        gpu.keepBusy(0, stream, BUSY_NANOS);
        fill(address, mark, stream);
    }

    private void fill(long address, int mark, long stream) {
        gpu.copies().fillBytes(0, address, (byte) mark, SIZE, stream);
    }

    private SpillableBuffer filledLate(SpillStore store, int mark) {
        SpillableBuffer buffer = store.allocate(SIZE, 0, first, 0);
        try (SpillableBuffer.Lease lease = buffer.acquire(first)) {
            fillLate(lease.address(), mark, first);
        }
        return buffer;
    }

    private void spill(SpillStore store) {
        assertThat(store.spill(0, SIZE)).isEqualTo(SIZE);
    }

    private void assertContents(SpillableBuffer buffer, int mark, long stream) {
        try (SpillableBuffer.Lease lease = buffer.acquire(stream)) {
            assertContents(lease.address(), mark, stream);
        }
    }

    /// What the stream sees.
    private void assertContents(long address, int mark, long stream) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(2);
            gpu.copies().toHost(0, bytes.asSlice(0, 1), address, 1, stream);
            gpu.copies().toHost(0, bytes.asSlice(1, 1), address + SIZE - 1, 1, stream);
            gpu.devices().synchronize(0);
            assertThat(bytes.toArray(ValueLayout.JAVA_BYTE)).containsExactly(mark, mark);
        }
    }

    private SpillStore openFor(SpillPlace place) {
        return open(place == SpillPlace.HOST ? SIZE : 0);
    }

    @ParameterizedTest
    @EnumSource(names = {"HOST", "FILE"})
    void aCaptureThatAcquiresASpilledBufferIsRefusedAndGoesOn(SpillPlace place) {
        try (SpillStore store = openFor(place)) {
            SpillableBuffer buffer = filledLate(store, 7);
            spill(store);
            assertThat(buffer.place()).isEqualTo(place);
            assertRefusedInACapture(buffer, "can't come back to its device while stream 0x");
            assertThat(buffer.place()).isEqualTo(place);
            assertContents(buffer, 7, second);
        }
    }

    @Test
    void aCaptureThatCanNotWaitForOtherUsesIsRefusedAndGoesOn() {
        try (SpillStore store = open(SIZE)) {
            SpillableBuffer buffer = filledLate(store, 7);
            assertRefusedInACapture(buffer, "can't wait for its uses on other streams");
            gpu.streams().synchronize(0, first);
            capture(() -> {
                try (SpillableBuffer.Lease lease = buffer.acquire(second)) {
                    fill(lease.address(), 8, second);
                }
            });
            assertContents(buffer, 8, second);
        }
    }

    private void assertRefusedInACapture(SpillableBuffer buffer, String message) {
        capture(() -> assertThatIllegalStateException()
                .isThrownBy(() -> buffer.acquire(second))
                .withMessageContaining(message)
                .withMessageContaining("acquire it before the capture"));
    }

    /// Captures work on the second stream, and launches the graph once.
    private void capture(Runnable work) {
        try (GraphCapture capture = GraphCapture.begin(memory, 0, second, CaptureMode.GLOBAL)) {
            work.run();
            try (CudaGraph graph = capture.endAndInstantiate()) {
                graph.launch(second);
            }
        }
    }

    @Test
    void aBufferComesBackWithWorkThatWasLate() {
        try (SpillStore store = open(SIZE)) {
            SpillableBuffer buffer = filledLate(store, 5);
            spill(store);
            assertThat(buffer.place()).isEqualTo(SpillPlace.HOST);
            assertContents(buffer, 5, second);
        }
    }

    @Test
    void aSecondStreamWaitsForTheCopyOfTheFirst() {
        try (SpillStore store = open(SIZE)) {
            SpillableBuffer buffer = filledLate(store, 5);
            spill(store);
            gpu.devices().synchronize(0);
            gpu.keepBusy(0, second, BUSY_NANOS);
            try (SpillableBuffer.Lease _ = buffer.acquire(second);
                    SpillableBuffer.Lease lease = buffer.acquire(third)) {
                assertContents(lease.address(), 5, third);
            }
        }
    }

    @Test
    void aFileHasWorkThatWasLate() {
        try (SpillStore store = open(0)) {
            SpillableBuffer buffer = filledLate(store, 5);
            spill(store);
            assertThat(buffer.place()).isEqualTo(SpillPlace.FILE);
            assertContents(buffer, 5, second);
        }
    }

    @Test
    void aFileHasWhatWasStillOnItsWayToTheHost() {
        try (SpillStore store = open(SIZE)) {
            SpillableBuffer buffer = filledLate(store, 5);
            spill(store);
            SpillableBuffer next = filledLate(store, 6);
            spill(store);
            assertThat(buffer.place()).isEqualTo(SpillPlace.FILE);
            assertThat(next.place()).isEqualTo(SpillPlace.HOST);
            assertContents(buffer, 5, second);
            spill(store);
            assertContents(next, 6, second);
        }
    }

    /// The block that had the memory before may still be in use on the stream of the allocation.
    @Test
    void theFirstUseComesAfterTheStreamOfTheAllocation() {
        try (SpillStore store = open(SIZE)) {
            long before = memory.allocate(SIZE, 0, first);
            fillLate(before, 9, first);
            memory.free(before, first);
            SpillableBuffer buffer = store.allocate(SIZE, 0, first, 0);
            try (SpillableBuffer.Lease lease = buffer.acquire(second)) {
                assertThat(lease.address()).isEqualTo(before);
                fill(lease.address(), 5, second);
            }
            gpu.devices().synchronize(0);
            assertContents(buffer, 5, second);
        }
    }

    @Test
    void theMemoryOfAClosedBufferIsUsedAfterItsLastUse() {
        try (SpillStore store = open(SIZE)) {
            SpillableBuffer buffer = store.allocate(SIZE, 0, first, 0);
            long address;
            try (SpillableBuffer.Lease lease = buffer.acquire(second)) {
                address = lease.address();
                fillLate(address, 9, second);
            }
            buffer.close();
            long next = memory.allocate(SIZE, 0, first);
            fill(next, 5, first);
            gpu.devices().synchronize(0);
            assertContents(next, 5, first);
            memory.free(next, first);
            long again = memory.allocate(SIZE, 0, first);
            assertThat(again).as("the memory comes back once its use has ended").isIn(address, next);
            memory.free(again, first);
        }
    }

    @Test
    void aLeaseOfAThreadsOwnStreamMayEndOnAnotherThread() throws Exception {
        try (SpillStore store = open(SIZE)) {
            SpillableBuffer buffer = store.allocate(SIZE, 0, first, 0);
            FutureTask<SpillableBuffer.Lease> filling = new FutureTask<>(() -> {
                SpillableBuffer.Lease lease = buffer.acquire(Streams.PER_THREAD_DEFAULT);
                fillLate(lease.address(), 5, Streams.PER_THREAD_DEFAULT);
                return lease;
            });
            Thread.ofPlatform().start(filling);
            filling.get().close();
            spill(store);
            assertContents(buffer, 5, second);
        }
    }

    @Test
    void aVirtualThreadHasNoStreamOfItsOwn() throws Exception {
        try (SpillStore store = open(SIZE)) {
            SpillableBuffer buffer = store.allocate(SIZE, 0, first, 0);
            FutureTask<SpillableBuffer.Lease> acquiring =
                    new FutureTask<>(() -> buffer.acquire(Streams.PER_THREAD_DEFAULT));
            Thread.ofVirtual().start(acquiring);
            assertThatExceptionOfType(ExecutionException.class)
                    .isThrownBy(acquiring::get)
                    .withCauseInstanceOf(UnusableStreamException.class);
        }
    }
}
