package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.KeptBlock;
import io.cistern.errors.UnknownAddressException;
import io.cistern.errors.UnusableStreamException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Allocates while streams are captured, and checks contents with graphs and kernels: the cases that users of
/// captured allocations meet. `direct` stands for all allocators that know nothing of graphs.
@Timeout(120) // on the test's own thread, which must end its captures
public abstract class CapturedGraphs extends GraphFixture {
    private static final String CACHING = "caching";
    private static final String SEGMENTS = "caching:source=linear";
    private static final String ASYNC = "async";
    private static final String DIRECT = "direct";

    /// Runs the tests on a driver, and closes it after the test.
    protected CapturedGraphs(CudaDriver driver) {
        super(driver);
    }

    /// Returns the driver on which the tests run.
    protected final CudaDriver driver() {
        return driver;
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void launchesUseMemoryThatNobodyElseGets(String spec) {
        memory.setCurrent(spec);
        long result = allocate(MIB);
        GraphCapture capture = capture();
        long scratch = allocate(MIB);
        write(scratch, MIB, 5, stream);
        copy(result, scratch, MIB, stream);
        memory.free(scratch, stream);
        long executable = executable(capture);
        for (int i = 0; i < 5; i++) {
            long bystander = allocate(MIB);
            assertThat(bystander).isNotEqualTo(scratch);
            write(bystander, MIB, 1000 + i, stream);
            launch(executable);
            assertHolds(bystander, MIB, 1000 + i);
            assertHolds(result, MIB, 5);
            memory.free(bystander, stream);
        }
        memory.free(result, stream);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void eachLaunchWritesTheResultThatTheGraphLeaves(String spec) {
        memory.setCurrent(spec);
        long result;
        try (GraphCapture capture = capture()) {
            result = allocate(MIB);
            write(result, MIB, 5, stream);
            try (CudaGraph graph = capture.endAndInstantiate()) {
                for (int i = 0; i < 3; i++) {
                    graph.launch(stream);
                    assertHolds(result, MIB, 5);
                    write(result, MIB, 6, stream);
                }
            }
        }
        assertHolds(result, MIB, 6);
        memory.free(result, stream);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void theResultOfAGraphThatNeverRanKeepsItsAddress(String spec) {
        memory.setCurrent(spec);
        List<Long> results = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            try (GraphCapture capture = capture()) {
                results.add(allocate(MIB));
                capture.endAndInstantiate().close();
            }
        }
        assertThat(results).doesNotHaveDuplicates();
        results.forEach(each -> memory.free(each, stream));
        assertThat(memory.liveBlocks()).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void aCaptureThatIsAnnouncedOnceItHasBegunIsNotLost(String spec) throws InterruptedException {
        memory.setCurrent(spec);
        for (int i = 0; i < 20; i++) {
            graphs.beginCapture(DEVICE, stream, CaptureMode.RELAXED);
            GraphMemory own = GraphCapture.announce(memory, DEVICE, stream);
            memory.free(allocate(MIB), stream);
            long graph = graphs.endCapture(DEVICE, stream);
            GraphCapture.announceEnd(memory, DEVICE, stream, graph);
            graphs.destroy(DEVICE, graph);
            while (!own.isGone()) {
                Thread.sleep(1); // so that the next announcement finds memory to give back
            }
        }
        assertThat(memory.liveBlocks()).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC})
    void aCapturedStreamGetsNothingFromItsCache(String spec) {
        memory.setCurrent(spec);
        long cached = allocate(64 * KIB);
        memory.free(cached, stream);
        try (GraphCapture _ = capture()) {
            long captured = allocate(64 * KIB);
            assertThat(captured).isNotEqualTo(cached);
            memory.free(captured, stream);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void aResultIsReadAfterItsGraphIsGone(String spec) throws InterruptedException {
        Allocator allocator = memory.setCurrent(spec);
        GraphCapture capture = capture();
        long result = allocate(MIB);
        write(result, MIB, 9, stream);
        GraphMemory own = capture.memory();
        long executable = executable(capture);
        launch(executable);
        driver.streams().synchronize(DEVICE, stream);
        destroy(executable);
        awaitGone(own);
        assertHolds(result, MIB, 9);
        memory.free(result, stream);
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        if (!spec.equals(ASYNC)) { // reports the memory of all graphs of the process
            assertThat(own.reservedBytes(DEVICE)).isZero();
        }
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isZero();
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void memoryStaysWithTheGraphAndGoesWithIt(String spec) throws InterruptedException {
        memory.setCurrent(spec);
        GraphCapture capture = capture();
        long scratch = allocate(8 * MIB);
        write(scratch, MIB, 1, stream);
        memory.free(scratch, stream);
        GraphMemory own = capture.memory();
        long executable = executable(capture);
        launch(executable);
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        launch(executable);
        driver.streams().synchronize(DEVICE, stream);
        long before = driver.memory().freeBytes(DEVICE);
        destroy(executable);
        awaitGone(own);
        graphs.trimMemory(DEVICE);
        assertThat(driver.memory().freeBytes(DEVICE) - before).isGreaterThanOrEqualTo(8 * MIB);
        assertThat(memory.allocators()).hasSize(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void anAbandonedCaptureLeavesNothing(String spec) {
        memory.setCurrent(spec);
        long free = driver.memory().freeBytes(DEVICE);
        for (int i = 0; i < 10; i++) {
            try (GraphCapture capture = capture()) {
                long scratch = allocate(MIB);
                write(scratch, MIB, 1, stream);
                memory.free(scratch, stream);
                assertThat(capture.memory().isGone()).isFalse();
            }
        }
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(memory.allocators()).hasSize(1);
        assertThat(driver.memory().freeBytes(DEVICE)).isGreaterThanOrEqualTo(free - 4 * MIB);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, ASYNC, DIRECT})
    void aCaptureThatWentWrongLeavesNothing(String spec) throws InterruptedException {
        memory.setCurrent(spec);
        GraphCapture capture = capture();
        long block = allocate(MIB);
        assertThatThrownBy(() -> driver.streams().synchronize(DEVICE, stream)).isInstanceOf(CudaException.class);
        assertThatThrownBy(capture::end).isInstanceOf(CudaException.class);
        memory.free(block, stream);
        awaitGone(capture.memory());
        assertThat(memory.allocators()).hasSize(1);
        long usual = allocate(MIB);
        write(usual, MIB, 3, stream);
        assertHolds(usual, MIB, 3);
        memory.free(usual, stream);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void whatIsAllocatedBeforeAndFreedInTheCaptureIsKept(String spec) throws InterruptedException {
        Allocator allocator = memory.setCurrent(spec);
        long workspace = allocate(MIB);
        long result = allocate(MIB);
        GraphCapture capture = capture();
        write(workspace, MIB, 21, stream);
        copy(result, workspace, MIB, stream);
        memory.free(workspace, stream);
        GraphMemory own = capture.memory();
        long executable = executable(capture);
        for (int i = 0; i < 3; i++) {
            long bystander = allocate(MIB);
            assertThat(bystander).isNotEqualTo(workspace);
            write(bystander, MIB, 500, stream);
            launch(executable);
            assertHolds(bystander, MIB, 500);
            assertHolds(result, MIB, 21);
            memory.free(bystander, stream);
        }
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isEqualTo(2);
        destroy(executable);
        awaitGone(own);
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isEqualTo(1);
        memory.free(result, stream);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void otherThreadsAllocateAndTrimWhileOneCaptures(String spec) throws Exception {
        memory.setCurrent(spec);
        GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL);
        long captured = allocate(MIB);
        write(captured, MIB, 2, stream);
        try (ExecutorService executor = Executors.newFixedThreadPool(2)) {
            executor.submit(() -> {
                        List<Long> live = new ArrayList<>();
                        for (int i = 0; i < 50; i++) {
                            live.add(memory.allocate(300 * KIB * (1 + i % 7), DEVICE, other));
                            write(live.getLast(), 256 * KIB, i, other);
                        }
                        live.forEach(address -> memory.free(address, other));
                        driver.streams().synchronize(DEVICE, other);
                        memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
                        memory.free(memory.allocate(64 * MIB, DEVICE, other), other);
                    })
                    .get(60, TimeUnit.SECONDS);
        }
        memory.free(captured, stream);
        launch(executable(capture));
        driver.streams().synchronize(DEVICE, stream);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void virtualThreadsAllocateWhileOneCaptures(String spec) throws InterruptedException, ExecutionException {
        memory.setCurrent(spec);
        GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL);
        try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
            executor.submit(() -> memory.free(memory.allocate(3 * MIB, DEVICE, other), other))
                    .get();
        }
        executable(capture);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void severalCapturesAreUnderWayAtOnce(String spec) {
        memory.setCurrent(spec);
        long left = allocate(MIB);
        long right = allocate(MIB);
        GraphCapture first = capture();
        GraphCapture second = GraphCapture.begin(memory, DEVICE, other, CaptureMode.THREAD_LOCAL);
        long one = allocate(MIB);
        long two = memory.allocate(MIB, DEVICE, other);
        write(one, MIB, 10, stream);
        write(two, MIB, 20, other);
        copy(left, one, MIB, stream);
        copy(right, two, MIB, other);
        memory.free(one, stream);
        memory.free(two, other);
        long firstExecutable = executable(first);
        long secondExecutable = executable(second);
        graphs.launch(DEVICE, secondExecutable, other);
        launch(firstExecutable);
        driver.streams().synchronize(DEVICE, other);
        assertHolds(left, MIB, 10);
        assertHolds(right, MIB, 20);
        memory.free(left, stream);
        memory.free(right, stream);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS})
    void graphsThatShareMemoryReserveLessAndRunInCaptureOrder(String spec) {
        memory.setCurrent(spec);
        long result = allocate(MIB);
        GraphCapture first = capture();
        GraphMemory shared = first.memory();
        long one = allocate(MIB);
        write(one, MIB, 30, stream);
        copy(result, one, MIB, stream);
        memory.free(one, stream);
        long before = executable(first);
        long reserved = shared.reservedBytes(DEVICE);
        GraphCapture second = capture(shared);
        long two = allocate(MIB);
        assertThat(two).isEqualTo(one);
        write(two, MIB, 40, stream);
        copy(result, two, MIB, stream);
        memory.free(two, stream);
        long after = executable(second);
        assertThat(shared.reservedBytes(DEVICE)).isEqualTo(reserved);
        launch(before);
        assertHolds(result, MIB, 30);
        launch(after);
        assertHolds(result, MIB, 40);
        memory.free(result, stream);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS})
    void aBlockThatOneStreamFreedServesAnotherOnceTheGraphOrdersThem(String spec) {
        memory.setCurrent(spec);
        GraphCapture capture = capture();
        follow(other, stream);
        long block = allocate(MIB);
        follow(other, stream);
        write(block, MIB, 1, other);
        memory.free(block, other);
        long early = allocate(MIB);
        assertThat(early).as("not joined yet").isNotEqualTo(block);
        write(early, MIB, 2, stream);
        follow(stream, other);
        List<Long> late = new ArrayList<>();
        for (int i = 0; i < 70 && !late.contains(block); i++) { // not every allocation looks for it
            late.add(allocate(MIB));
        }
        assertThat(late).contains(block);
        late.forEach(each -> memory.free(each, stream));
        memory.free(early, stream);
        launch(executable(capture));
        driver.streams().synchronize(DEVICE, stream);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void aUseOnAnotherStreamIsRecordedInsideACapture(String spec) {
        memory.setCurrent(spec);
        long result = allocate(MIB);
        GraphCapture capture = capture();
        long block = allocate(MIB);
        write(block, MIB, 77, stream);
        follow(other, stream);
        copy(result, block, MIB, other);
        memory.recordUse(block, other);
        memory.free(block, stream);
        long next = allocate(MIB);
        assertThat(next).as("the other stream may still read").isNotEqualTo(block);
        write(next, MIB, 1, stream);
        follow(stream, other);
        memory.free(next, stream);
        long executable = executable(capture);
        launch(executable);
        launch(executable);
        assertHolds(result, MIB, 77);
        memory.free(result, stream);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void aGraphKeepsABlockThatItUsesAndAnotherStreamFrees(String spec) {
        memory.setCurrent(spec);
        long block = memory.allocate(MIB, DEVICE, other);
        driver.streams().synchronize(DEVICE, other);
        GraphCapture capture = capture();
        write(block, MIB, 5, stream);
        memory.recordUse(block, stream);
        memory.free(block, other);
        assertThatThrownBy(() -> memory.recordUse(block, other)).isInstanceOf(UnknownAddressException.class);
        long executable = executable(capture);
        long next = memory.allocate(MIB, DEVICE, other);
        write(next, MIB, 1, other);
        driver.streams().synchronize(DEVICE, other);
        launch(executable);
        assertHolds(next, MIB, 1);
        memory.free(next, other);
    }

    /// One of the two graphs comes to nothing.
    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void eachGraphKeepsABlockThatTwoUse(String spec) {
        memory.setCurrent(spec);
        long block = memory.allocate(MIB, DEVICE, other);
        driver.streams().synchronize(DEVICE, other);
        GraphCapture capture = capture();
        write(block, MIB, 5, stream);
        memory.recordUse(block, stream);
        try (GraphCapture second = GraphCapture.begin(memory, DEVICE, other, CaptureMode.THREAD_LOCAL)) {
            write(block, MIB, 6, other);
            memory.free(block, other);
            assertThat(GraphMemory.kept(memory))
                    .extracting(KeptBlock::graph)
                    .containsExactly(second.memory().toString());
        }
        long executable = executable(capture);
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(GraphMemory.kept(memory))
                .extracting(KeptBlock::graph)
                .containsExactly(capture.memory().toString());
        long next = memory.allocate(MIB, DEVICE, other);
        write(next, MIB, 1, other);
        driver.streams().synchronize(DEVICE, other);
        launch(executable);
        assertHolds(next, MIB, 1);
        memory.free(next, other);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void aCaptureOfOtherCodeIsAnnounced(String spec) throws InterruptedException {
        memory.setCurrent(spec);
        graphs.beginCapture(DEVICE, stream, CaptureMode.THREAD_LOCAL);
        GraphMemory own = GraphCapture.announce(memory, DEVICE, stream);
        long scratch = allocate(MIB);
        write(scratch, MIB, 4, stream);
        memory.free(scratch, stream);
        long graph = graphs.endCapture(DEVICE, stream);
        GraphCapture.announceEnd(memory, DEVICE, stream, graph);
        long executable = graphs.instantiate(DEVICE, graph, true);
        graphs.launch(DEVICE, executable, stream);
        driver.streams().synchronize(DEVICE, stream);
        graphs.destroyExecutable(DEVICE, executable);
        graphs.destroy(DEVICE, graph);
        awaitGone(own);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING})
    void aCaptureThatNobodyAnnouncedIsRefusedBesideOneThatWas(String spec) {
        memory.setCurrent(spec);
        try (GraphCapture _ = capture()) {
            graphs.beginCapture(DEVICE, other, CaptureMode.THREAD_LOCAL);
            assertThatThrownBy(() -> memory.allocate(KIB, DEVICE, other))
                    .isInstanceOf(UnusableStreamException.class)
                    .hasMessageContaining("GraphCapture.announce");
            graphs.destroy(DEVICE, graphs.endCapture(DEVICE, other));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS})
    void aScopeOfAPoolCapturesNothing(String spec) {
        memory.setCurrent(DIRECT);
        try (MemoryPool pool = memory.pools().open(spec);
                Scope _ = pool.enter()) {
            long block = allocate(MIB);
            memory.free(block, stream);
            driver.streams().synchronize(DEVICE, stream);
            assertThat(pool.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                    .isPositive();
            long again = allocate(MIB);
            memory.free(again, stream);
            assertThat(allocate(MIB)).isEqualTo(again);
            memory.free(again, stream);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS})
    void aPoolsBlocksServeACaptureInItsScopeAndStayWithTheGraph(String spec) throws InterruptedException {
        memory.setCurrent(DIRECT);
        try (MemoryPool pool = memory.pools().open(spec)) {
            GraphCapture capture = capture();
            long block;
            try (Scope _ = pool.enter()) {
                block = allocate(MIB);
            }
            write(block, MIB, 8, stream);
            memory.free(block, stream);
            GraphMemory own = capture.memory();
            long executable = executable(capture);
            try (Scope _ = pool.enter()) {
                long usual = allocate(MIB);
                assertThat(usual).isNotEqualTo(block);
                memory.free(usual, stream);
            }
            launch(executable);
            driver.streams().synchronize(DEVICE, stream);
            destroy(executable);
            awaitGone(own);
            assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS, ASYNC, DIRECT})
    void aHundredCapturesWithAWorkspaceEachReserveNoMoreThanOne(String spec) throws InterruptedException {
        memory.setCurrent(spec);
        long free = 0;
        for (int i = 0; i < 100; i++) {
            long workspace = allocate(8 * MIB);
            GraphCapture capture = capture();
            write(workspace, MIB, i, stream);
            memory.free(workspace, stream);
            GraphMemory own = capture.memory();
            long executable = executable(capture);
            launch(executable);
            driver.streams().synchronize(DEVICE, stream);
            destroy(executable);
            awaitGone(own);
            free = i == 0 ? driver.memory().freeBytes(DEVICE) : free;
        }
        assertThat(driver.memory().freeBytes(DEVICE)).isGreaterThan(free - 100 * MIB);
    }

    @ParameterizedTest
    @ValueSource(strings = {CACHING, SEGMENTS})
    void blocksOfAllSizesAreReusedInsideACapture(String spec) {
        memory.setCurrent(spec);
        try (GraphCapture capture = capture()) {
            for (int round = 0; round < 20; round++) {
                List<Long> live = new ArrayList<>();
                for (int i = 1; i <= 8; i++) {
                    live.add(allocate(700 * KIB * i));
                }
                live.forEach(address -> memory.free(address, stream));
            }
            assertThat(capture.memory().reservedBytes(DEVICE)).isLessThan(64 * MIB);
        }
    }
}
