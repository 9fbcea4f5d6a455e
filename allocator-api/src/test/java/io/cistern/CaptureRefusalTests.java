package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.mockito.AdditionalAnswers.delegatesTo;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;
import static org.mockito.Mockito.withSettings;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Graphs;
import io.cistern.errors.UnusableStreamException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Blocks that are freed while captures end, on another thread in the middle of the free, or while the driver refuses
/// calls: none goes back before its uses are over, and none is lost.
class CaptureRefusalTests {
    private static final int DEVICE = 0;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final Graphs graphs = mock(Graphs.class, withSettings().defaultAnswer(delegatesTo(gpu.graphs())));
    private final DeviceMemory memory = DeviceMemory.builder(driver()).open();
    private final CountingAllocator counting = new CountingAllocator();
    private final Allocator allocator = memory.open(OpenOptions.made("counting", counting));
    private final long stream = gpu.streams().create(DEVICE);
    private final long captured = gpu.streams().create(DEVICE);
    private final long block = allocator.allocate(1000, DEVICE, stream);

    private CudaDriver driver() {
        CudaDriver driver = mock(CudaDriver.class, withSettings().defaultAnswer(delegatesTo(gpu)));
        when(driver.graphs()).thenReturn(graphs);
        return driver;
    }

    @AfterEach
    void allIsFreedInTheEnd() {
        gpu.faults().clear();
        memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        assertThat(counting.streamsOfFrees).hasSize(counting.allocations);
        memory.close();
        assertThat(gpu.calls().of(DriverCall.EVENT_CREATE))
                .isEqualTo(gpu.calls().of(DriverCall.EVENT_DESTROY));
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void aGraphThatCanNotBeInstantiatedGoesDespiteARefusal() {
        GraphCapture capture = GraphCapture.begin(memory, DEVICE, captured, CaptureMode.RELAXED);
        gpu.faults().failOn(DriverCall.GRAPH_INSTANTIATE, 0, 1, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.GRAPH_DESTROY, 0, 1, CudaResult.UNKNOWN);
        assertThatExceptionOfType(CudaException.class).isThrownBy(capture::endAndInstantiate);
        assertThat(gpu.heldObjects()).doesNotContainKey("graphs");
        memory.free(block, stream);
    }

    @Test
    void anAbandonedCaptureEndsDespiteARefusal() {
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, captured, CaptureMode.RELAXED)) {
            gpu.faults().failOn(DriverCall.STREAM_END_CAPTURE, 0, 1, CudaResult.UNKNOWN);
        }
        assertThat(graphs.captureStatus(DEVICE, captured)).isEqualTo(CaptureStatus.NONE);
        assertThat(gpu.heldObjects()).doesNotContainKey("graphs");
        memory.free(block, stream);
    }

    @Test
    void aCaptureClosedOnTheWrongThreadGoesOn() {
        GraphCapture capture = GraphCapture.begin(memory, DEVICE, captured, CaptureMode.GLOBAL);
        CompletableFuture<Void> elsewhere = CompletableFuture.runAsync(capture::close, Thread.ofPlatform()::start);
        assertThatExceptionOfType(CompletionException.class)
                .isThrownBy(elsewhere::join)
                .withMessageContaining("STREAM_CAPTURE_WRONG_THREAD");
        memory.free(allocator.allocate(100, DEVICE, captured), captured);
        capture.close();
        assertThat(capture.memory().isGone()).isTrue();
        memory.free(block, stream);
    }

    /// A thread that closes an allocator sees a capture, which ends before the close is left to its end.
    @Test
    void aCloseWaitsForNoCaptureThatHasEnded() throws InterruptedException {
        for (int round = 0; round < 2000; round++) {
            Allocator closing = memory.open(OpenOptions.made("closing", new CountingAllocator()));
            GraphCapture.announce(memory, DEVICE, captured);
            CyclicBarrier together = new CyclicBarrier(2);
            Thread thread = Thread.ofPlatform().start(() -> {
                await(together);
                closing.close();
            });
            await(together);
            GraphCapture.announceEnd(memory, DEVICE, captured, 0);
            thread.join();
            assertThat(closing.isDrained()).isTrue();
            assertThat(memory.allocators()).as("round %d", round).containsExactly(allocator);
        }
        memory.free(block, stream);
    }

    /// A thread on another captured stream asks which capture that is, while this one ends.
    @Test
    void nobodyAsksAboutAStreamWhoseCaptureHasEnded() throws InterruptedException {
        GraphMemory into = GraphMemory.of(memory);
        long asking = gpu.streams().create(DEVICE);
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, asking, CaptureMode.RELAXED, into)) {
            beginCapture();
            Thread ending = Thread.ofPlatform().unstarted(() -> {
                endCapture();
                gpu.streams().destroy(DEVICE, captured);
            });
            doAnswer(_ -> {
                        ending.start();
                        ending.join(100); // it may be made to wait for this answer
                        return gpu.graphs().captureId(DEVICE, captured);
                    })
                    .doAnswer(_ -> gpu.graphs().captureId(DEVICE, captured))
                    .when(graphs)
                    .captureId(DEVICE, captured);
            memory.free(allocator.allocate(100, DEVICE, asking), asking);
            ending.join();
        }
        assertThat(into.isGone()).isTrue();
        memory.free(block, stream);
    }

    private void end(long each) {
        memory.streamClosing(DEVICE, each);
        gpu.streams().destroy(DEVICE, each);
    }

    @Test
    void nobodyAsksAboutAStreamThatHasEndedWhenItsBlockIsFreed() {
        end(stream);
        beginCapture();
        memory.free(block, stream);
        assertThat(counting.streamsOfFrees).as("a later stream may be captured").isEmpty();
        endCapture();
        assertThat(counting.streamsOfFrees).hasSize(1);
    }

    @Test
    void aStreamThatHasTheHandleOfAnEndedOneIsCapturedLikeAny() {
        end(captured);
        assertThat(gpu.streams().create(DEVICE)).isEqualTo(captured);
        memory.currents().set(allocator);
        beginCapture();
        long kept = memory.allocate(1000, DEVICE, captured);
        memory.free(kept, captured);
        assertThat(memory.allocate(1000, DEVICE, captured)).isEqualTo(kept);
        memory.free(kept, captured);
        endCapture();
        memory.free(block, stream);
    }

    /// The capture ends, and the stream with it, between two questions about it.
    @Test
    void nobodyAsksAboutAStreamThatHasEndedThoughItUsedTheBlock() throws InterruptedException {
        memory.recordUse(block, captured);
        beginCapture();
        Thread ending = Thread.ofPlatform().unstarted(() -> {
            endCapture();
            end(captured);
        });
        doAnswer(_ -> {
                    long id = gpu.graphs().captureId(DEVICE, captured);
                    ending.start();
                    return id;
                })
                .doAnswer(_ -> {
                    ending.join(100); // it may be made to wait for this answer
                    return gpu.graphs().captureId(DEVICE, captured);
                })
                .when(graphs)
                .captureId(DEVICE, captured);
        memory.free(block, stream);
        ending.join();
    }

    /// The stream of a free ends right before the driver is asked about it, or as soon as it is let.
    @Test
    void nobodyAsksAboutAStreamThatEndsDuringTheFree() throws InterruptedException {
        beginCapture();
        Thread ending = Thread.ofPlatform().unstarted(() -> end(stream));
        doAnswer(_ -> {
                    ending.start();
                    awaitStop(ending);
                    return gpu.graphs().captureId(DEVICE, stream);
                })
                .when(graphs)
                .captureId(DEVICE, stream);
        memory.free(block, stream);
        ending.join();
        endCapture();
    }

    private static void awaitStop(Thread thread) {
        while (thread.isAlive() && thread.getState() != Thread.State.BLOCKED) {
            Thread.onSpinWait();
        }
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (InterruptedException | BrokenBarrierException e) {
            throw new AssertionError(e);
        }
    }

    private void beginCapture() {
        GraphCapture.announce(memory, DEVICE, captured);
        gpu.graphs().beginCapture(DEVICE, captured, CaptureMode.RELAXED);
    }

    private void endCapture() {
        gpu.graphs().destroy(DEVICE, gpu.graphs().endCapture(DEVICE, captured));
        GraphCapture.announceEnd(memory, DEVICE, captured, 0);
    }

    /// Another thread ends the capture right after the driver has said for the n-th time from now on that it is on,
    /// or as soon as it is let.
    private Thread endCaptureBehindAnswer(int n) {
        AtomicInteger answers = new AtomicInteger();
        Thread ending = Thread.ofPlatform().unstarted(this::endCapture);
        doAnswer(call -> {
                    long id = gpu.graphs().captureId(DEVICE, captured);
                    if (answers.incrementAndGet() == n) {
                        ending.start();
                        awaitStop(ending);
                    }
                    return id;
                })
                .when(graphs)
                .captureId(DEVICE, captured);
        return ending;
    }

    private void driverGivesNoFence() {
        refuse(DriverCall.EVENT_RECORD);
        refuse(DriverCall.CONTEXT_RECORD_EVENT);
        refuse(DriverCall.CONTEXT_SYNCHRONIZE);
    }

    private void refuse(DriverCall call) {
        gpu.faults().failOn(call, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
    }

    @Test
    void aBlockOfAnEndedCaptureWaitsForItsOtherUses() {
        memory.recordUse(block, captured);
        beginCapture();
        endCaptureBehindAnswer(1);
        memory.free(block, stream);
        assertThat(counting.streamsOfFrees).containsExactly(stream);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isOne();
    }

    @Test
    void aFreedBlockIsOrdinaryIfTheCaptureEndsFirst() {
        beginCapture();
        endCaptureBehindAnswer(1);
        memory.free(block, captured);
        assertThat(counting.streamsOfFrees).containsExactly(captured);
    }

    @Test
    void aFreedBlockGoesBackThoughItsGraphsMemoryGoesMeanwhile() throws InterruptedException {
        memory.free(block, stream);
        for (int round = 1; round <= 200; round++) {
            long freed = allocator.allocate(1000, DEVICE, captured);
            beginCapture();
            Thread ending = endCaptureBehindAnswer(2);
            memory.free(freed, captured);
            ending.join();
            memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
            assertThat(counting.streamsOfFrees).hasSize(round + 1);
        }
    }

    @Test
    void aBlockIsKeptWhileItsUsesCanBeNeitherMarkedNorAwaited() {
        memory.recordUse(block, captured);
        driverGivesNoFence();
        memory.free(block, stream);
        assertThat(counting.streamsOfFrees).isEmpty();
    }

    @Test
    void aStreamThatEndsWithoutAFenceIsWaitedForAtTheFree() {
        memory.recordUse(block, captured);
        driverGivesNoFence();
        memory.streamClosing(DEVICE, captured);
        gpu.faults().clear();
        long fences = gpu.calls().of(DriverCall.CONTEXT_RECORD_EVENT);
        memory.free(block, stream);
        assertThat(gpu.calls().of(DriverCall.CONTEXT_RECORD_EVENT)).isEqualTo(fences + 1);
        assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT)).isOne();
        assertThat(counting.streamsOfFrees).containsExactly(stream);
    }

    @Test
    void aFreeInAnUnannouncedCaptureWaitsForAnnouncedOnes() {
        beginCapture();
        long unannounced = beginUnannounced();
        assertThatExceptionOfType(UnusableStreamException.class).isThrownBy(() -> memory.free(block, unannounced));
        endBoth(unannounced);
    }

    @Test
    void aUseInAnUnannouncedCaptureWaitsForAnnouncedOnes() {
        beginCapture();
        long unannounced = beginUnannounced();
        memory.recordUse(block, unannounced);
        assertThatExceptionOfType(UnusableStreamException.class).isThrownBy(() -> memory.free(block, stream));
        endBoth(unannounced);
    }

    private long beginUnannounced() {
        long unannounced = gpu.streams().create(DEVICE);
        gpu.graphs().beginCapture(DEVICE, unannounced, CaptureMode.RELAXED);
        return unannounced;
    }

    private void endBoth(long unannounced) {
        assertThat(counting.streamsOfFrees).isEmpty();
        gpu.graphs().destroy(DEVICE, gpu.graphs().endCapture(DEVICE, unannounced));
        endCapture();
        assertThat(counting.streamsOfFrees).hasSize(1);
    }

    @Test
    void whatACaptureKeptGoesBackAfterThoseOfOtherMemoryOfTheDriver() {
        beginCapture();
        memory.free(block, captured);
        try (DeviceMemory other = DeviceMemory.builder(gpu).open();
                GraphCapture _ = GraphCapture.begin(other, DEVICE, stream, CaptureMode.RELAXED)) {
            endCapture();
            assertThat(counting.streamsOfFrees).isEmpty();
            assertThat(gpu.calls().of(DriverCall.STREAM_WAIT_EVENT))
                    .as("for what is no event")
                    .isZero();
        }
        memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        assertThat(counting.streamsOfFrees).hasSize(1);
    }

    @Test
    void theEndOfACaptureIsNotRefusedForWhatItKept() {
        beginCapture();
        memory.free(block, captured);
        driverGivesNoFence();
        endCapture();
        assertThat(counting.streamsOfFrees).isEmpty();
    }

    @Test
    void aGraphWhoseEndIsNotToldIsDestroyedWithItsMemory() {
        GraphCapture capture = GraphCapture.begin(memory, DEVICE, captured, CaptureMode.GLOBAL);
        memory.free(block, captured);
        refuse(DriverCall.GRAPH_RETAIN_USER_OBJECT);
        assertThatExceptionOfType(CudaException.class).isThrownBy(capture::end);
        assertThat(gpu.calls().of(DriverCall.GRAPH_DESTROY)).isOne();
        assertThat(capture.memory().isGone()).isTrue();
    }

    @Test
    void aBlockThatIsNotReadyForACaptureIsNotLost() {
        memory.currents().set(allocator);
        memory.free(block, stream);
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, captured, CaptureMode.GLOBAL)) {
            refuse(DriverCall.STREAM_SYNCHRONIZE);
            assertThatExceptionOfType(CudaException.class).isThrownBy(() -> memory.allocate(1000, DEVICE, captured));
        }
        assertThat(counting.allocations).isEqualTo(2);
    }

    @Test
    void aFreeIsTheGraphsIfTheDriverWillNotTellOfTheCapture() {
        beginCapture();
        refuse(DriverCall.STREAM_GET_CAPTURE_INFO);
        memory.free(block, captured);
        assertThat(counting.streamsOfFrees).isEmpty();
        gpu.faults().clear();
        endCapture();
        assertThat(counting.streamsOfFrees).hasSize(1);
    }

    @Test
    void aFreeIsEachGraphsIfTheDriverWillNotTellOfTheCapture() {
        try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, captured, CaptureMode.RELAXED)) {
            try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.RELAXED)) {
                refuse(DriverCall.STREAM_GET_CAPTURE_INFO);
                memory.free(block, captured);
                gpu.faults().clear();
            }
            try (CudaGraph _ = capture.endAndInstantiate()) {
                assertThat(counting.streamsOfFrees).as("the graph may use it").isEmpty();
            }
        }
        assertThat(counting.streamsOfFrees).hasSize(1);
    }

    @Test
    void aStreamGetsNothingIfTheDriverHidesItsCapture() {
        memory.currents().set(allocator);
        memory.free(block, stream);
        beginCapture();
        refuse(DriverCall.STREAM_GET_CAPTURE_INFO);
        assertThatExceptionOfType(CudaException.class).isThrownBy(() -> memory.allocate(1000, DEVICE, captured));
        gpu.faults().clear();
        endCapture();
    }

    /// Hands out addresses and knows nothing of streams.
    private static final class CountingAllocator implements DeviceAllocator {
        private final List<Long> streamsOfFrees = new ArrayList<>();
        private int allocations;

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return (1L << 20) + 4096L * allocations++;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            streamsOfFrees.add(stream);
        }
    }
}
