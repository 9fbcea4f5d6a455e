package io.cistern.handles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.handles.CheckedLibrary.Handle;
import io.cistern.spi.TrimMode;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// The workspaces of handles: whose they are, and when they go back.
@Timeout(60)
final class WorkspaceTests {
    private static final long BYTES = 64 << 20;

    private final HandlePoolFixture fixture = new HandlePoolFixture();
    private final CheckedLibrary library = fixture.library;
    private final long stream = fixture.stream;
    private final long other = fixture.other;
    private HandlePool<Handle> pool;

    @BeforeEach
    void open() {
        library.workspaceBytes = BYTES;
        pool = fixture.open(HandlePoolOptions.DEFAULT);
    }

    @AfterEach
    void nothingIsLeft() {
        pool.close();
        assertThat(fixture.liveBlocks()).isZero();
        fixture.close();
    }

    @Test
    void eachStreamHasAWorkspaceOfItsOwn() {
        long first = pool.handle(0, stream).workspace;
        long second = pool.handle(0, other).workspace;
        assertThat(first).isNotZero().isNotEqualTo(second);
        assertThat(pool.handle(0, stream).workspace).isEqualTo(first);
        assertThat(pool.statistics(0).workspaceBytes()).isEqualTo(2 * BYTES);
    }

    @Test
    void aHandleKeepsTheWorkspacesOfTheTwoStreamsThatItWasSetToLast() {
        long first = pool.handle(0, stream).workspace;
        for (int i = 0; i < 100; i++) {
            long each = fixture.gpu.streams().create(0);
            assertThat(pool.handle(0, each).workspace).isNotZero().isNotEqualTo(first);
            assertThat(pool.handle(0, stream).workspace).isEqualTo(first);
        }
        assertThat(pool.statistics(0).workspaceBytes()).isEqualTo(2 * BYTES);
        assertThat(fixture.liveBlocks()).isEqualTo(2);
    }

    @Test
    void aHandleThatNoThreadHasKeepsNone() {
        HandlePoolFixture.onNewThread(() -> {
            pool.handle(0, stream);
            return pool.handle(0, other);
        });
        HandlePoolFixture.await(() -> pool.statistics(0).workspaceBytes() == 0);
        assertThat(fixture.liveBlocks()).isZero();
        assertThat(pool.statistics(0).idle()).isEqualTo(1);
        assertThat(pool.handle(0, stream).workspace).isNotZero();
    }

    @Test
    void theEndOfALeaseGivesThemBack() {
        HandlePoolFixture.onVirtualThread(() -> {
            try (var lease = pool.lease(0)) {
                lease.handle(stream).use(stream);
                assertThat(fixture.liveBlocks()).isEqualTo(1);
            }
            return null;
        });
        assertThat(fixture.liveBlocks()).isZero();
        assertThat(pool.statistics(0).idle()).isEqualTo(1);
    }

    @Test
    void memoryThatRunsOutTakesAllButTheOneThatIsSet() {
        pool.handle(0, stream);
        long kept = pool.handle(0, other).workspace;
        long rest = fixture.gpu.memory().freeBytes(0) + BYTES / 2;
        long block = fixture.memory.allocate(rest, 0, stream);
        assertThat(fixture.liveBlocks())
                .as("the block and the workspace that is set")
                .isEqualTo(2);
        fixture.memory.free(block, stream);
        assertThat(pool.handle(0, other).workspace).isEqualTo(kept);
        assertThat(pool.handle(0, stream).workspace).isNotZero().isNotEqualTo(kept);
    }

    @Test
    void whatIsFreedForARequestIsReported() {
        pool.handle(0, stream);
        pool.handle(0, other);
        long deviceBytes = fixture.gpu.devices().totalBytes(0);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> fixture.memory.allocate(deviceBytes, 0, stream))
                .satisfies(refusal -> assertThat(refusal.steps()).anySatisfy(tried -> {
                    assertThat(tried.step()).isEqualTo(ReclaimStep.CALLBACKS);
                    assertThat(tried.byteSize()).isEqualTo(BYTES);
                }));
        assertThat(pool.statistics(0).workspaceBytes()).isEqualTo(BYTES);
    }

    @Test
    void aThreadThatFindsNoMemoryForOneIsTold() {
        long rest = fixture.memory.allocate(fixture.gpu.memory().freeBytes(0) - BYTES / 2, 0, stream);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> pool.handle(0, stream));
        fixture.memory.free(rest, stream);
        pool.handle(0, stream).use(stream);
    }

    @Test
    void aStreamThatEndsTakesItsWorkspaceAlong() {
        pool.handle(0, stream);
        pool.handle(0, other);
        fixture.memory.streamClosing(0, other);
        assertThat(fixture.liveBlocks()).isEqualTo(1);
        assertThat(pool.handle(0, other).workspace).isNotZero();
    }

    @Test
    void aStreamThatWasSetBeforeTakesItsWorkspaceAlongToo() {
        pool.handle(0, stream);
        long kept = pool.handle(0, other).workspace;
        fixture.memory.streamClosing(0, stream);
        assertThat(fixture.liveBlocks()).isEqualTo(1);
        assertThat(pool.handle(0, other).workspace).isEqualTo(kept);
    }

    @Test
    void theDefaultStreamsDoNotEnd() {
        for (long each = 0; each <= Streams.PER_THREAD_DEFAULT; each++) {
            long kept = pool.handle(0, each).workspace;
            int set = library.streamsSet.get();
            fixture.memory.streamClosing(0, each);
            assertThat(pool.handle(0, each).workspace).isEqualTo(kept);
            assertThat(library.streamsSet).hasValue(set);
        }
    }

    @Test
    void aHandleThatChangesThreadsLeavesThePerThreadStreamBehind() {
        HandlePoolFixture.onNewThread(() -> pool.handle(0, 2));
        HandlePoolFixture.await(() -> fixture.liveBlocks() == 0);
        assertThat(pool.statistics(0).idle()).isEqualTo(1);
    }

    /// A virtual thread can't name that stream.
    @Test
    void aVirtualThreadFreesTheWorkspaceOfAPerThreadStream() {
        HandlePoolFixture.onNewThread(() -> pool.handle(0, 2));
        assertThat(HandlePoolFixture.onVirtualThread(() -> pool.trim(0, Duration.ofHours(1))))
                .isZero();
        HandlePoolFixture.await(() -> fixture.liveBlocks() == 0);
    }

    @Test
    void aGraphHasAWorkspaceOfItsOwn() {
        long ordinary = pool.handle(0, stream).workspace;
        GraphMemory ofGraph;
        long graph;
        try (GraphCapture capture = GraphCapture.begin(fixture.memory, 0, stream, CaptureMode.GLOBAL)) {
            Handle captured = pool.handle(0, stream);
            captured.use(stream);
            assertThat(captured.workspace).isNotZero().isNotEqualTo(ordinary);
            assertThat(pool.handle(0, stream).workspace).isEqualTo(captured.workspace);
            ofGraph = capture.memory();
            graph = capture.end();
        }
        assertThat(pool.handle(0, stream).workspace).isEqualTo(ordinary);
        assertThat(fixture.liveBlocks()).isEqualTo(2);
        destroy(graph, ofGraph);
        assertThat(fixture.liveBlocks()).isEqualTo(1);
    }

    @Test
    void theWorkspaceOfAGraphGoesThoughTheDriverRefusesTwoCalls() {
        GraphMemory ofGraph;
        long graph;
        try (GraphCapture capture = GraphCapture.begin(fixture.memory, 0, stream, CaptureMode.GLOBAL)) {
            pool.handle(0, stream).use(stream);
            ofGraph = capture.memory();
            graph = capture.end();
        }
        fixture.gpu.faults().failOn(DriverCall.STREAM_CREATE, 0, 1, CudaResult.UNKNOWN);
        fixture.gpu.faults().failOn(DriverCall.EVENT_SYNCHRONIZE, 0, 1, CudaResult.UNKNOWN);
        destroy(graph, ofGraph);
        assertThat(fixture.gpu.faults().failedCalls()).isEqualTo(2);
        assertThat(fixture.liveBlocks()).isZero();
    }

    @Test
    void theWorkspaceOfAGraphGoesOnceTheDriverRefusesNoMore() {
        GraphMemory ofGraph;
        long graph;
        try (GraphCapture capture = GraphCapture.begin(fixture.memory, 0, stream, CaptureMode.GLOBAL)) {
            pool.handle(0, stream).use(stream);
            ofGraph = capture.memory();
            graph = capture.end();
        }
        pool.close();
        fixture.gpu.faults().failOn(DriverCall.CONTEXT_RECORD_EVENT, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        fixture.gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        fixture.gpu.faults().failOn(DriverCall.STREAM_CREATE, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        fixture.gpu.faults().failOn(DriverCall.EVENT_SYNCHRONIZE, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        fixture.gpu.graphs().destroy(0, graph);
        HandlePoolFixture.await(ofGraph::isGone);
        GraphMemory.collect(fixture.memory);
        assertThat(fixture.liveBlocks()).as("refused").isEqualTo(1);
        fixture.gpu.faults().clear();
        GraphMemory.collect(fixture.memory);
        assertThat(fixture.liveBlocks()).isZero();
        assertThat(library.alive()).isZero();
    }

    @Test
    void aHandleOfAGraphThatEndsBesideACaptureGoesAfterIt() {
        GraphMemory ofGraph;
        long graph;
        try (GraphCapture capture = GraphCapture.begin(fixture.memory, 0, stream, CaptureMode.GLOBAL)) {
            pool.handle(0, stream).use(stream);
            ofGraph = capture.memory();
            graph = capture.end();
        }
        pool.close();
        try (GraphCapture capture = GraphCapture.begin(fixture.memory, 0, other, CaptureMode.GLOBAL)) {
            destroy(graph, ofGraph);
            assertThat(library.alive()).isEqualTo(1);
            fixture.gpu.graphs().destroy(0, capture.end());
        }
        GraphMemory.collect(fixture.memory);
        assertThat(fixture.liveBlocks()).isZero();
        assertThat(library.alive()).isZero();
    }

    @Test
    void eachStreamOfACaptureHasAWorkspaceOfItsOwn() {
        GraphMemory ofGraph;
        long graph;
        try (GraphCapture capture = GraphCapture.begin(fixture.memory, 0, stream, CaptureMode.GLOBAL)) {
            follow(other, stream);
            long first = pool.handle(0, stream).workspace;
            assertThat(pool.handle(0, other).workspace).isNotZero().isNotEqualTo(first);
            assertThat(pool.handle(0, stream).workspace).isEqualTo(first);
            follow(stream, other);
            ofGraph = capture.memory();
            graph = capture.end();
        }
        assertThat(pool.statistics(0).workspaceBytes()).isEqualTo(2 * BYTES);
        destroy(graph, ofGraph);
        assertThat(pool.statistics(0).workspaceBytes()).isZero();
    }

    @Test
    void aGraphThatIsGoneLeavesTheWorkspacesOfOthers() {
        long[] graphs = new long[2];
        GraphMemory[] memories = new GraphMemory[2];
        for (int i = 0; i < 2; i++) {
            try (GraphCapture capture = GraphCapture.begin(fixture.memory, 0, stream, CaptureMode.GLOBAL)) {
                pool.handle(0, stream).use(stream);
                memories[i] = capture.memory();
                graphs[i] = capture.end();
            }
        }
        assertThat(pool.statistics(0).workspaceBytes()).isEqualTo(2 * BYTES);
        destroy(graphs[0], memories[0]);
        assertThat(pool.statistics(0).workspaceBytes()).isEqualTo(BYTES);
        pool.close();
        assertThat(library.alive()).as("the other graph needs it").isEqualTo(1);
        destroy(graphs[1], memories[1]);
        assertThat(library.alive()).isZero();
    }

    @Test
    void aHandleLivesAsLongAsTheGraphThatWasCapturedWithIt() {
        GraphMemory ofGraph;
        long graph;
        try (GraphCapture capture = GraphCapture.begin(fixture.memory, 0, stream, CaptureMode.GLOBAL)) {
            pool.handle(0, stream).use(stream);
            ofGraph = capture.memory();
            graph = capture.end();
        }
        pool.close();
        assertThat(library.alive()).isEqualTo(1);
        destroy(graph, ofGraph);
        assertThat(library.alive()).isZero();
    }

    @Test
    void aHandleIsCreatedBesideACapture() {
        long graph;
        try (GraphCapture capture = GraphCapture.begin(fixture.memory, 0, other, CaptureMode.GLOBAL)) {
            HandlePoolFixture.onNewThread(() -> pool.handle(0, stream)).use(stream);
            graph = capture.end();
        }
        fixture.gpu.graphs().destroy(0, graph);
    }

    @Test
    void nothingIsDestroyedBesideACapture() {
        HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
        HandlePoolFixture.await(() -> pool.statistics(0).idle() == 1);
        long graph;
        try (GraphCapture capture = GraphCapture.begin(fixture.memory, 0, other, CaptureMode.GLOBAL)) {
            assertThat(pool.trim(0, Duration.ZERO)).isZero();
            graph = capture.end();
        }
        assertThat(pool.trim(0, Duration.ZERO)).isEqualTo(1);
        fixture.gpu.graphs().destroy(0, graph);
    }

    private void follow(long later, long earlier) {
        long event = fixture.gpu.events().create(0);
        fixture.memory.driver().events().record(0, event, earlier);
        fixture.memory.driver().streams().await(0, later, event);
        fixture.gpu.events().destroy(0, event);
    }

    private void destroy(long graph, GraphMemory its) {
        fixture.gpu.graphs().destroy(0, graph);
        HandlePoolFixture.await(its::isGone);
        fixture.memory.trim(0, 0, TrimMode.WITHOUT_WAITING);
    }

    /// Its thread ends it while another one frees the workspace of a handle that had it.
    @Test
    void aStreamEndsOnlyAfterItsWorkspaceIsFreed() throws InterruptedException {
        long third = fixture.gpu.streams().create(0);
        Thread ending = Thread.ofPlatform().unstarted(() -> {
            fixture.memory.streamClosing(0, stream);
            fixture.gpu.streams().destroy(0, stream);
        });
        fixture.useHooked().onFree = itsStream -> {
            if (ending.getState() == Thread.State.NEW) {
                ending.start();
                join(ending, 100); // it may be made to wait for this free
                fixture.gpu.streams().isIdle(0, itsStream);
            }
        };
        pool.handle(0, stream);
        pool.handle(0, other);
        pool.handle(0, third);
        ending.join();
    }

    private static void join(Thread thread, long millis) {
        try {
            thread.join(millis);
        } catch (InterruptedException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /// In a capture that nobody announced, beside one that was.
    @Test
    void theWorkspaceOfAStreamThatIsCapturedIsFreedOnce() {
        long third = fixture.gpu.streams().create(0);
        long captured = fixture.gpu.streams().create(0);
        pool.handle(0, stream);
        pool.handle(0, other);
        try (GraphCapture _ = GraphCapture.begin(fixture.memory, 0, captured, CaptureMode.RELAXED)) {
            fixture.gpu.graphs().beginCapture(0, stream, CaptureMode.RELAXED);
            assertThat(pool.handle(0, third).workspace).isNotZero();
            fixture.gpu.graphs().destroy(0, fixture.gpu.graphs().endCapture(0, stream));
        }
        GraphMemory.collect(fixture.memory);
        long next = fixture.memory.allocate(BYTES, 0, other);
        fixture.memory.streamClosing(0, stream);
        assertThat(fixture.memory.moduleSupport().isLive(next)).isTrue();
        fixture.memory.free(next, other);
    }
}
