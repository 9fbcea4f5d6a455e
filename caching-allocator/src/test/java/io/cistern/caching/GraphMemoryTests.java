package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The memory of graphs in `caching`, on a small simulated GPU.
final class GraphMemoryTests extends PoolFixture {
    private final List<Long> executables = new ArrayList<>();
    private final List<Long> graphs = new ArrayList<>();

    GraphMemoryTests() {
        super(1024 * MIB);
    }

    @AfterEach
    void destroyGraphs() throws InterruptedException {
        gpu.devices().synchronize(DEVICE);
        executables.forEach(each -> gpu.graphs().destroyExecutable(DEVICE, each));
        graphs.forEach(each -> gpu.graphs().destroy(DEVICE, each));
        gpu.devices().synchronize(DEVICE);
        for (int i = 0; i < 5000 && memory.allocators().size() > 1; i++) { // the driver tells in its own time
            memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            Thread.sleep(1);
        }
    }

    private GraphCapture capture() {
        return GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL);
    }

    private long executable(GraphCapture capture) {
        long graph = capture.end();
        graphs.add(graph);
        long executable = gpu.graphs().instantiate(DEVICE, graph, false);
        executables.add(executable);
        return executable;
    }

    private void launchAndWait(long executable) {
        gpu.graphs().launch(DEVICE, executable, stream);
        gpu.streams().synchronize(DEVICE, stream);
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:source=linear"})
    void memoryThatRunsOutInACaptureIsAnErrorAndTheCaptureGoesOn(String spec) {
        memory.setCurrent(spec);
        GraphCapture capture = capture();
        long fits = allocate(400 * MIB);
        assertThatThrownBy(() -> allocate(800 * MIB))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining(capture.memory() + " of " + spec);
        assertThat(gpu.graphs().captureStatus(DEVICE, stream)).isEqualTo(CaptureStatus.ACTIVE);
        long another = allocate(MIB);
        free(fits, another);
        launchAndWait(executable(capture));
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:source=linear"})
    void whatTheCacheKeepsIdleServesACapture(String spec) {
        Allocator usual = memory.setCurrent(spec);
        free(allocate(800 * MIB));
        gpu.streams().synchronize(DEVICE, stream);
        assertThat(usual.reservedBytes(DEVICE).orElseThrow()).isGreaterThanOrEqualTo(800 * MIB);
        long idle = gpu.streams().create(DEVICE);
        GraphCapture capture = GraphCapture.begin(memory, DEVICE, idle, CaptureMode.GLOBAL);
        long block = memory.allocate(800 * MIB, DEVICE, idle);
        memory.free(block, idle);
        launchAndWait(executable(capture));
        assertThat(usual.reservedBytes(DEVICE).orElseThrow()).isLessThan(800 * MIB);
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:source=linear"})
    void runningOutBesideACaptureGivesOtherStreamsIdleMemoryBack(String spec) throws Exception {
        memory.setCurrent(spec);
        long giver = gpu.streams().create(DEVICE);
        memory.free(memory.allocate(480 * MIB, DEVICE, giver), giver);
        GraphCapture capture = capture();
        long captured = allocate(20 * MIB);
        try (ExecutorService executor = Executors.newSingleThreadExecutor()) {
            executor.submit(() -> {
                        long taker = gpu.streams().create(DEVICE);
                        memory.free(memory.allocate(800 * MIB, DEVICE, taker), taker);
                    })
                    .get(30, TimeUnit.SECONDS);
        }
        free(captured);
        launchAndWait(executable(capture));
    }

    @Test
    void idleMemoryOfAStreamThatIsCapturedStaysWhileItIs() {
        memory.setCurrent("caching:source=linear");
        free(allocate(480 * MIB));
        long other = gpu.streams().create(DEVICE);
        GraphCapture capture = capture();
        assertThatThrownBy(() -> memory.allocate(800 * MIB, DEVICE, other))
                .isInstanceOf(DeviceOutOfMemoryException.class);
        executable(capture);
        memory.free(memory.allocate(800 * MIB, DEVICE, other), other);
    }

    @Test
    void nothingOfAGraphMovesOrGoesBackWhileItLives() {
        memory.setCurrent("caching");
        GraphCapture capture = capture();
        long scratch = allocate(8 * MIB);
        gpu.copies().fillBytes(DEVICE, scratch, (byte) 1, 8 * MIB, stream);
        free(scratch);
        GraphMemory own = capture.memory();
        long executable = executable(capture);
        launchAndWait(executable);
        long reserved = own.reservedBytes(DEVICE);
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(gpu.calls().of(DriverCall.MEM_UNMAP)).isZero();
        assertThatThrownBy(() -> allocate(1024 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(own.reservedBytes(DEVICE)).isEqualTo(reserved);
        launchAndWait(executable);
    }

    @Test
    void aGraphOutlivesTheStreamThatWasCaptured() {
        memory.setCurrent("caching");
        long shortLived = gpu.streams().create(DEVICE);
        GraphCapture capture = GraphCapture.begin(memory, DEVICE, shortLived, CaptureMode.GLOBAL);
        long scratch = memory.allocate(4 * MIB, DEVICE, shortLived);
        gpu.copies().fillBytes(DEVICE, scratch, (byte) 1, 4 * MIB, shortLived);
        memory.free(scratch, shortLived);
        long executable = executable(capture);
        memory.streamClosing(DEVICE, shortLived);
        gpu.streams().destroy(DEVICE, shortLived);
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        launchAndWait(executable);
    }

    @Test
    void blocksFreedByAReusedHandleServeOthersInTheCapture() {
        memory.setCurrent("caching");
        long other = gpu.streams().create(DEVICE);
        GraphCapture first = capture();
        follow(other, stream);
        memory.free(memory.allocate(4 * MIB, DEVICE, other), other);
        follow(stream, other);
        GraphMemory shared = first.memory();
        executable(first);
        memory.streamClosing(DEVICE, other);
        gpu.streams().destroy(DEVICE, other);
        assertThat(gpu.streams().create(DEVICE)).isEqualTo(other);

        GraphCapture second = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL, shared);
        follow(other, stream);
        long own = memory.allocate(4 * MIB, DEVICE, other);
        long block = allocate(MIB);
        follow(other, stream);
        memory.free(block, other);
        follow(stream, other);
        List<Long> late = new ArrayList<>();
        for (int i = 0; i < 70 && !late.contains(block); i++) { // it is not looked for at each allocation
            late.add(allocate(MIB));
        }
        late.forEach(this::free);
        memory.free(own, other);
        executable(second);
        assertThat(late).contains(block);
    }

    private void follow(long later, long earlier) {
        long event = gpu.events().create(DEVICE);
        gpu.events().record(DEVICE, event, earlier);
        gpu.streams().await(DEVICE, later, event);
        gpu.events().destroy(DEVICE, event);
    }

    @Test
    void limitsCountWhatACaptureAllocates() {
        Allocator limited = memory.open(OpenOptions.spec("caching").limit(MemoryLimit.of("a few", 4 * MIB)));
        memory.currents().set(limited);
        long outside = allocate(2 * MIB);
        try (GraphCapture _ = capture()) {
            long inside = allocate(2 * MIB);
            assertThatThrownBy(() -> allocate(MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
            free(inside);
        }
        free(outside);
    }

    @Test
    void theLimitOfAScopeCountsWhatACaptureAllocates() {
        memory.setCurrent("caching");
        MemoryLimit limit = MemoryLimit.of("of the scope", 4 * MIB);
        try (Scope _ = memory.current(DEVICE).enter(ScopeOptions.all().limit(limit));
                GraphCapture _ = capture()) {
            long inside = allocate(3 * MIB);
            assertThat(limit.usedBytes()).isEqualTo(3 * MIB);
            assertThatThrownBy(() -> allocate(2 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
            free(inside);
        }
        assertThat(limit.usedBytes()).isZero();
    }

    @Test
    void aBlockThatACheckpointKeepsStaysChargedToItsLimits() {
        MemoryLimit limit = MemoryLimit.of("a few", 4 * MIB);
        Allocator limited = memory.open(OpenOptions.spec("caching").limit(limit));
        memory.currents().set(limited);
        GraphCapture capture = capture();
        long inside = allocate(3 * MIB);
        GraphMemory own = capture.memory();
        executable(capture);
        try (GraphMemory.Checkpoint checkpoint = own.checkpoint()) {
            for (int i = 0; i < 3; i++) {
                free(inside);
                assertThat(limit.usedBytes()).isEqualTo(3 * MIB);
                assertThatThrownBy(() -> allocate(4 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
                assertThat(checkpoint.restore()).containsExactly(inside);
                assertThat(limit.usedBytes()).isEqualTo(3 * MIB);
            }
        }
        free(inside);
    }

    @Test
    void aRestoredBlockThatAnotherCaptureFreesIsKeptForItsGraph() {
        memory.setCurrent("caching");
        GraphCapture first = capture();
        long block = allocate(4 * MIB);
        GraphMemory own = first.memory();
        executable(first);
        GraphMemory.Checkpoint checkpoint = own.checkpoint();
        long other = gpu.streams().create(DEVICE);
        GraphCapture second = GraphCapture.begin(memory, DEVICE, other, CaptureMode.GLOBAL);
        free(block); // outside
        checkpoint.restore();
        checkpoint.close();
        gpu.copies().fillBytes(DEVICE, block, (byte) 1, 4 * MIB, other);
        memory.free(block, other);
        executable(second);
        GraphCapture third = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL, own);
        long next = allocate(4 * MIB);
        free(next);
        executable(third);
        assertThat(next).isNotEqualTo(block);
    }

    @Test
    void aPairInACaptureAsksTheDriverOnceAndOneBesideItTwice() {
        memory.setCurrent("caching");
        long other = gpu.streams().create(DEVICE);
        try (GraphCapture _ = capture()) {
            for (long on : new long[] {stream, other}) {
                memory.free(memory.allocate(64 << 10, DEVICE, on), on); // now there is memory for it
                long before = calls();
                long asked = gpu.calls().of(DriverCall.STREAM_GET_CAPTURE_INFO);
                memory.free(memory.allocate(64 << 10, DEVICE, on), on);
                assertThat(gpu.calls().of(DriverCall.STREAM_GET_CAPTURE_INFO) - asked)
                        .isEqualTo(on == stream ? 1 : 2);
                assertThat(calls() - before).isEqualTo(on == stream ? 1 : 2);
            }
        }
    }

    private long calls() {
        return Arrays.stream(DriverCall.Kind.values())
                .mapToLong(gpu.calls()::of)
                .sum();
    }

    @Test
    void anAllocationFromAPoolThatIsRefusedInACaptureLeavesNoBlock() {
        try (MemoryPool pool = builder().open()) {
            try (GraphCapture _ = capture();
                    Scope _ = pool.enter()) {
                gpu.faults().failOn(DriverCall.STREAM_SYNCHRONIZE, 0, 1, CudaResult.UNKNOWN);
                assertThatThrownBy(() -> allocate(MIB)).isInstanceOf(CudaException.class);
            }
            assertThat(pool.liveBlockCount()).isZero();
        }
    }

    @Test
    void aBlockOfAGraphThatAnotherCaptureFreesStaysWithItsGraph() {
        Allocator allocator = memory.setCurrent("direct");
        GraphCapture first = capture();
        long block = allocate(MIB);
        gpu.copies().fillBytes(DEVICE, block, (byte) 1, MIB, stream);
        long executable = executable(first);
        GraphCapture second = capture();
        free(block);
        second.close();
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isOne();
        launchAndWait(executable);
    }

    @Test
    void theLastBlockOfAClosedAllocatorMayBeFreedInACapture() {
        memory.setCurrent("direct");
        Allocator closed = memory.open("caching");
        long block;
        try (Scope _ = closed.enter(ScopeOptions.all().limit(MemoryLimit.of("of the scope", 4 * MIB)))) {
            block = allocate(MIB);
        }
        closed.close();
        GraphCapture capture = capture();
        free(block);
        capture.close();
        assertThat(closed.isDrained()).isTrue();
    }

    @ParameterizedTest
    @EnumSource(
            value = DriverCall.class,
            names = {"STREAM_CREATE", "STREAM_WAIT_EVENT"})
    void blocksOfAGoneGraphGoBackThoughTheDriverRefusesToOrder(DriverCall refused) {
        Allocator allocator = memory.setCurrent("direct");
        GraphCapture capture = capture();
        free(allocate(MIB), allocate(2 * MIB));
        gpu.faults().failOn(refused, 0, 2, CudaResult.UNKNOWN);
        capture.close();
        gpu.faults().clear();
        assertThat(allocator.statistics(DEVICE).liveBlocks()).isZero();
    }

    @Test
    void theCacheIsAsItWasWhenNothingIsCapturedAnyMore() {
        memory.setCurrent("caching");
        long block = allocate(64 << 10);
        free(block);
        capture().close();
        assertThat(allocate(64 << 10)).isEqualTo(block);
        free(block);
    }

    @Test
    void anAllocatorClosedDuringACaptureGivesItsMemoryBackLater() {
        memory.setCurrent("direct");
        Allocator closing = memory.open("caching");
        long other = gpu.streams().create(DEVICE);
        long block = closing.allocate(4 * MIB, DEVICE, other);
        GraphCapture capture = capture();
        closing.close();
        memory.free(block, other);
        assertThat(gpu.virtualMemory().granularity(PhysicalMemory.onDevice(DEVICE), false))
                .isPositive();
        executable(capture);
        assertThat(memory.allocators()).hasSize(1);
    }

    /// How many segments a graph takes that holds three blocks of a size at a time, and how many are left when it
    /// is gone and one of them is alive.
    @ParameterizedTest
    @CsvSource({
        "512, 2097152, 2097152",
        "1048576, 4194304, 2097152",
        "1049088, 20971520, 20971520",
        "10485248, 41943040, 20971520",
        "10486272, 37748736, 12582912",
    })
    void segmentsOfAGraphAndOfItsResult(long blockBytes, long whileItLives, long afterwards)
            throws InterruptedException {
        memory.setCurrent("caching:source=linear");
        GraphCapture capture = capture();
        long result = allocate(blockBytes);
        for (int i = 0; i < 5; i++) {
            long copy = allocate(blockBytes);
            long sum = allocate(blockBytes);
            free(result, copy);
            result = sum;
        }
        GraphMemory own = capture.memory();
        executable(capture);
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(own.reservedBytes(DEVICE)).isEqualTo(whileItLives);
        executables.forEach(each -> gpu.graphs().destroyExecutable(DEVICE, each));
        executables.clear();
        graphs.forEach(each -> gpu.graphs().destroy(DEVICE, each));
        graphs.clear();
        for (int i = 0; i < 5000 && !own.isGone(); i++) {
            Thread.sleep(1);
        }
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(own.reservedBytes(DEVICE)).isEqualTo(afterwards);
        free(result);
        assertThat(own.reservedBytes(DEVICE)).isZero();
    }

    @Test
    void whatACaptureAllocatesIsInTheStatisticsOfItsGraph() {
        memory.setCurrent("caching");
        GraphCapture capture = capture();
        GraphMemory graph = capture.memory();
        long kept = allocate(MIB);
        free(allocate(2 * MIB));
        assertThat(graph.statistics(DEVICE).liveBlocks()).isOne();
        assertThat(graph.statistics(DEVICE).requestedBytes())
                .as("with the freed block")
                .isEqualTo(3 * MIB);
        assertThat(graph.statistics(DEVICE).requestedTotalBytes()).isEqualTo(3 * MIB);
        assertThat(graph.statistics(DEVICE).reservedBytes()).hasValue(graph.reservedBytes(DEVICE));
        assertThat(memory.current(DEVICE).statistics(DEVICE).allocations()).isZero();
        assertThat(memory.statistics(DEVICE).requestedBytes()).isEqualTo(3 * MIB);
        assertThat(graph.memorySummary(DEVICE)).contains("graphs, device 0");
        long other = gpu.streams().create(DEVICE);
        long outside = memory.current(DEVICE).allocate(MIB, DEVICE, other);
        assertThat(graph.liveBlocks())
                .singleElement()
                .satisfies(leak -> assertThat(leak.address()).isEqualTo(kept));
        free(kept);
        assertThat(graph.liveBlocks()).isEmpty();
        memory.free(outside, other);
        executable(capture);
    }
}
