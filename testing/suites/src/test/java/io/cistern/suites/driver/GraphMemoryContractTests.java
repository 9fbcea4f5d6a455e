package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.cuda.Graphs;
import io.cistern.testkit.StreamLatch;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Memory that graphs allocate and free themselves.
abstract class GraphMemoryContractTests extends GraphFixture {
    GraphMemoryContractTests(DriverContract suite) {
        super(suite);
    }

    private long memory(GraphMemoryAttribute attribute) {
        return graphs.memory(DEVICE, attribute);
    }

    @Test
    void anAllocationAndAFreeOnACapturedStreamBecomeNodes() {
        long target = linear(KIB);
        long stream = captured(CaptureMode.THREAD_LOCAL);
        long address = driver.pools().allocate(DEVICE, KIB, stream);
        fill(address, 4, stream);
        driver.copies().onDevice(DEVICE, target, address, KIB, stream);
        driver.pools().free(DEVICE, address, stream);
        long graph = graphOf(stream);
        assertThat(graphs.nodeCount(DEVICE, graph)).isEqualTo(4);
        long executable = executable(graph);
        launch(executable, stream);
        launch(executable, stream);
        assertThat(holds(target, 4, stream)).isTrue();
    }

    @Test
    void memoryThatTheGraphKeepsIsUsedAndFreedOutside() {
        long stream = captured(CaptureMode.THREAD_LOCAL);
        long address = driver.pools().allocate(DEVICE, KIB, stream);
        fill(address, 6, stream);
        long executable = executable(graphOf(stream));
        launch(executable, stream);
        assertThat(holds(address, 6, stream)).isTrue();
        driver.pools().free(DEVICE, address, stream);
        launch(executable, stream);
        driver.pools().free(DEVICE, address, stream);
        synchronize(stream);
    }

    @Test
    void aGraphWhoseMemoryIsNotFreedIsNotLaunchedAgain() {
        long stream = captured(CaptureMode.THREAD_LOCAL);
        long address = driver.pools().allocate(DEVICE, KIB, stream);
        long executable = executable(graphOf(stream));
        launch(executable, stream);
        assertFails(() -> launch(executable, stream), DriverCall.GRAPH_LAUNCH, CudaResult.INVALID_VALUE);
        driver.pools().free(DEVICE, address, stream);
    }

    @Test
    void orItIsFreedByTheLaunch() {
        long stream = captured(CaptureMode.THREAD_LOCAL);
        long address = driver.pools().allocate(DEVICE, KIB, stream);
        fill(address, 8, stream);
        long graph = graphOf(stream);
        long executable = graphs.instantiate(DEVICE, graph, true);
        afterwards(() -> graphs.destroyExecutable(DEVICE, executable));
        launch(executable, stream);
        launch(executable, stream);
        assertThat(holds(address, 8, stream)).isTrue();
        driver.pools().free(DEVICE, address, stream);
    }

    @Test
    void aGraphThatIsDestroyedWhileItRunsKeepsItsMemoryUntilItEnds() {
        long target = linear(KIB);
        long stream = captured(CaptureMode.THREAD_LOCAL);
        long address = driver.pools().allocate(DEVICE, KIB, stream);
        fill(address, 7, stream);
        driver.copies().onDevice(DEVICE, target, address, KIB, stream);
        driver.pools().free(DEVICE, address, stream);
        long graph = graphs.endCapture(DEVICE, stream);
        long executable = graphs.instantiate(DEVICE, graph, false);
        StreamLatch latch = latch();
        latch.hold(stream);
        launch(executable, stream);
        graphs.destroyExecutable(DEVICE, executable);
        graphs.destroy(DEVICE, graph);
        latch.release();
        assertThat(holds(target, 7, stream)).isTrue();
    }

    @Test
    void memoryThatOutlivesItsGraphIsFreedLater() {
        long stream = captured(CaptureMode.THREAD_LOCAL);
        long address = driver.pools().allocate(DEVICE, 8 * MIB, stream);
        fill(address, 5, stream);
        long graph = graphs.endCapture(DEVICE, stream);
        long executable = graphs.instantiate(DEVICE, graph, false);
        launch(executable, stream);
        graphs.destroyExecutable(DEVICE, executable);
        graphs.destroy(DEVICE, graph);
        assertThat(holds(address, 5, stream)).isTrue();
        driver.pools().free(DEVICE, address, stream);
        synchronize(stream);
        graphs.trimMemory(DEVICE);
        assertThat(memory(GraphMemoryAttribute.RESERVED_CURRENT)).isLessThan(8 * MIB);
    }

    @Test
    void memoryFromOutsideIsNotFreedInside() {
        long stream = stream();
        long address = driver.pools().allocate(DEVICE, KIB, stream);
        afterwards(() -> driver.pools().free(DEVICE, address, stream));
        begin(stream, CaptureMode.THREAD_LOCAL);
        assertFails(
                () -> driver.pools().free(DEVICE, address, stream),
                DriverCall.MEM_FREE_ASYNC,
                CudaResult.INVALID_VALUE);
        abandon(stream);
    }

    @Test
    void aGraphWithMemoryHasOneExecutable() {
        long stream = captured(CaptureMode.THREAD_LOCAL);
        driver.pools().free(DEVICE, driver.pools().allocate(DEVICE, KIB, stream), stream);
        long graph = graphOf(stream);
        executable(graph);
        assertFails(
                () -> graphs.instantiate(DEVICE, graph, false),
                DriverCall.GRAPH_INSTANTIATE,
                CudaResult.NOT_SUPPORTED,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void memoryNodesAreBuiltByHandToo() {
        long graph = graphs.create(DEVICE);
        afterwards(() -> graphs.destroy(DEVICE, graph));
        Graphs.AllocationNode memory = graphs.addAllocation(DEVICE, graph, List.of(), KIB);
        long filled = graphs.addFill(
                DEVICE, graph, List.of(memory.node()), memory.address(), 0x09090909, KIB / Integer.BYTES);
        long stream = stream();
        launch(executable(graph), stream);
        assertThat(holds(memory.address(), 9, stream)).isTrue();
        driver.pools().free(DEVICE, memory.address(), stream);
        assertThat(graphs.dependencies(DEVICE, filled)).containsExactly(memory.node());
    }

    @Test
    void memoryThatIsFreedInItsGraphIsNotFreedTwiceThere() {
        long graph = graphs.create(DEVICE);
        afterwards(() -> graphs.destroy(DEVICE, graph));
        Graphs.AllocationNode memory = graphs.addAllocation(DEVICE, graph, List.of(), KIB);
        long free = graphs.addFree(DEVICE, graph, List.of(memory.node()), memory.address());
        assertFails(
                () -> graphs.addFree(DEVICE, graph, List.of(free), memory.address()),
                DriverCall.GRAPH_ADD_MEM_FREE_NODE,
                CudaResult.INVALID_VALUE);
        assertThat(graphs.nodeCount(DEVICE, graph)).isEqualTo(2);
    }

    @Test
    void theDriverTellsWhatGraphsUseAndGivesItBackWhenTrimmed() {
        long stream = captured(CaptureMode.THREAD_LOCAL);
        long address = driver.pools().allocate(DEVICE, 8 * MIB, stream);
        long graph = graphs.endCapture(DEVICE, stream);
        long executable = graphs.instantiate(DEVICE, graph, false);
        launch(executable, stream);
        synchronize(stream);
        assertThat(memory(GraphMemoryAttribute.USED_CURRENT)).isGreaterThanOrEqualTo(8 * MIB);
        assertThat(memory(GraphMemoryAttribute.RESERVED_CURRENT)).isGreaterThanOrEqualTo(8 * MIB);
        driver.pools().free(DEVICE, address, stream);
        synchronize(stream);
        graphs.destroyExecutable(DEVICE, executable);
        graphs.destroy(DEVICE, graph);
        graphs.trimMemory(DEVICE);
        assertThat(memory(GraphMemoryAttribute.RESERVED_CURRENT)).isLessThan(8 * MIB);
        assertThat(memory(GraphMemoryAttribute.RESERVED_HIGH)).isGreaterThanOrEqualTo(8 * MIB);
        graphs.resetMemory(DEVICE, GraphMemoryAttribute.RESERVED_HIGH);
        assertThat(memory(GraphMemoryAttribute.RESERVED_HIGH)).isLessThan(8 * MIB);
    }
}
