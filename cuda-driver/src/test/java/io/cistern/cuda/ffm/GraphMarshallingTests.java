package io.cistern.cuda.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.cuda.Graphs;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/// Graphs: what arrives in C, and what comes back. Numbers have bits above the 32nd.
final class GraphMarshallingTests extends OverFakeLibrary {
    private static final long CAPTURED = 0xca97;
    private static final long GRAPH = 0x9_0000_0001L;
    private static final List<Long> NODES = List.of(0x7_0000_0001L, 0x7_0000_0002L);

    private Graphs graphs;

    @BeforeAll
    void openGraphs() {
        graphs = driver.graphs();
    }

    @AfterEach
    void noHostFunctionWaits() {
        assertThat(HostFunctions.waiting()).isZero();
    }

    @Test
    void askingForAStreamsCaptureIsOneCallAlsoInAShelter() {
        graphs.shelter(0);
        assertThat(graphs.captureId(0, CAPTURED)).isEqualTo(0x1_0000_0009L);
        assertThat(library.calls()).singleElement().asString().contains("cuStreamGetCaptureInfo_v3(ca97)");
        graphs.unshelter(0);
    }

    @Test
    void captures() {
        graphs.beginCapture(0, STREAM, CaptureMode.THREAD_LOCAL);
        assertThat(graphs.captureStatus(0, CAPTURED)).isEqualTo(CaptureStatus.ACTIVE);
        assertThat(graphs.captureStatus(0, STREAM)).isEqualTo(CaptureStatus.NONE);
        assertThat(graphs.captureId(0, CAPTURED)).isEqualTo(0x1_0000_0009L);
        assertThat(graphs.captureId(0, STREAM)).isZero();
        assertThat(graphs.capturingGraph(0, CAPTURED)).isEqualTo(GRAPH);
        assertThat(graphs.captureDependencies(0, CAPTURED)).isEqualTo(NODES);
        assertThat(graphs.captureDependencies(0, STREAM)).isEmpty();
        assertThat(graphs.endCapture(0, STREAM)).isEqualTo(GRAPH);
        assertCalls(
                "cuStreamBeginCapture_v2(500000007, 1)",
                "cuStreamIsCapturing(ca97)",
                "cuStreamIsCapturing(500000007)",
                "cuStreamGetCaptureInfo_v3(ca97)",
                "cuStreamGetCaptureInfo_v3(500000007)",
                "cuStreamGetCaptureInfo_v3(ca97)",
                "cuStreamGetCaptureInfo_v3(ca97)",
                "cuStreamGetCaptureInfo_v3(500000007)",
                "cuStreamEndCapture(500000007)");
    }

    @Test
    void theModeOfTheThreadComesBack() {
        graphs.relaxed(() ->
                assertThat(graphs.exchangeThreadMode(CaptureMode.THREAD_LOCAL)).isEqualTo(CaptureMode.RELAXED));
        assertThat(graphs.exchangeThreadMode(CaptureMode.GLOBAL)).isEqualTo(CaptureMode.GLOBAL);
    }

    @Test
    void aShelteredCallIsMadeInRelaxedMode() {
        graphs.exchangeThreadMode(CaptureMode.THREAD_LOCAL);
        library.record(true);
        graphs.shelter(0);
        driver.events().hasPassed(1, STREAM);
        graphs.unshelter(0);
        driver.events().hasPassed(1, STREAM);
        assertCalls(
                "cuThreadExchangeStreamCaptureMode(2)",
                "cuEventQuery(500000007)",
                "cuThreadExchangeStreamCaptureMode(1)",
                "cuEventQuery(500000007)");
        graphs.exchangeThreadMode(CaptureMode.GLOBAL);
    }

    @Test
    void whatWouldInvalidateTheCapturesOfADeviceIsNotCalled() {
        graphs.shelter(0);
        assertThatThrownBy(() -> driver.devices().synchronize(0)).hasMessageContaining("(900)");
        assertThatThrownBy(() -> driver.events().recordAll(0, 1)).hasMessageContaining("(900)");
        driver.devices().synchronize(1);
        graphs.unshelter(0);
        driver.devices().synchronize(0);
        assertThat(library.callsWithoutContexts())
                .filteredOn(call -> !call.contains("Exchange"))
                .containsExactly("cuCtxSynchronize()", "cuCtxSynchronize()");
    }

    @Test
    void nodes() {
        assertThat(graphs.create(0)).isEqualTo(0x9_0000_0002L);
        assertThat(graphs.addAllocation(1, GRAPH, NODES, 0x1_0000_0200L))
                .isEqualTo(new Graphs.AllocationNode(NODES.get(0), 0xa_0000_0003L));
        assertThat(graphs.addFree(0, GRAPH, List.of(), 0xa_0000_0003L)).isEqualTo(NODES.get(1));
        graphs.addFill(1, GRAPH, NODES, 0xa_0000_0003L, -2, 0x1_0000_0001L);
        graphs.addEmpty(0, GRAPH, NODES);
        assertThat(graphs.nodeCount(0, GRAPH)).isEqualTo(5);
        assertThat(graphs.dependencies(0, NODES.get(1))).isEqualTo(NODES);
        assertCalls(
                "cuGraphCreate(0)",
                "cuGraphAddMemAllocNode(900000001, 2, 700000002, 0100000000000000" + "0100000001000000"
                        + "00".repeat(88) + "0002000001000000)",
                "cuGraphAddMemFreeNode(900000001, 0, 0, a00000003)",
                "cuGraphAddMemsetNode(900000001, 2, 700000002, 030000000a000000" + "0000000000000000"
                        + "feffffff04000000" + "0100000001000000" + "0100000000000000, c1)",
                "cuGraphAddEmptyNode(900000001, 2, 700000002)",
                "cuGraphGetNodes(900000001)",
                "cuGraphNodeGetDependencies_v2(700000002)",
                "cuGraphNodeGetDependencies_v2(700000002)");
    }

    @Test
    void executables() {
        assertThat(graphs.instantiate(0, GRAPH, true)).isEqualTo(0x9_0000_0003L);
        graphs.launch(0, 0x9_0000_0003L, STREAM);
        graphs.update(0, 0x9_0000_0003L, GRAPH);
        graphs.destroyExecutable(0, 0x9_0000_0003L);
        graphs.destroy(0, GRAPH);
        assertCalls(
                "cuGraphInstantiateWithFlags(900000001, 1)",
                "cuGraphLaunch(900000003, 500000007)",
                "cuGraphExecUpdate_v2(900000003, 900000001)",
                "cuGraphExecDestroy(900000003)",
                "cuGraphDestroy(900000001)");
    }

    @Test
    void aRefusedUpdateSaysWhy() {
        library.fail("cuGraphExecUpdate_v2", 910);
        assertThatThrownBy(() -> graphs.update(0, 0x9_0000_0003L, GRAPH))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("updateResult=2");
    }

    @Test
    void memoryOfGraphs() {
        assertThat(graphs.memory(1, GraphMemoryAttribute.RESERVED_HIGH)).isEqualTo(0x5_0000_0003L);
        graphs.resetMemory(0, GraphMemoryAttribute.USED_HIGH);
        graphs.trimMemory(1);
        assertCalls(
                "cuDeviceGetGraphMemAttribute(1, 3)",
                "cuDeviceSetGraphMemAttribute(0, 1, 0)",
                "cuDeviceGraphMemTrim(1)");
    }

    @Test
    void whatIsTiedToAGraphRunsOnceWhenItIsGone() {
        AtomicInteger ran = new AtomicInteger();
        graphs.retain(0, GRAPH, ran::incrementAndGet);
        assertCalls("cuUserObjectCreate(1, 1)", "cuGraphRetainUserObject(900000001, 800000001, 1, 1)");
        library.destroyObject();
        assertThat(ran).hasValue(1);
    }

    @Test
    void whatCantBeTiedToAGraphNeverRuns() {
        AtomicInteger ran = new AtomicInteger();
        library.fail("cuGraphRetainUserObject", 1);
        assertThatThrownBy(() -> graphs.retain(0, GRAPH, ran::incrementAndGet)).isInstanceOf(CudaException.class);
        assertThat(ran).hasValue(0);
    }

    @Test
    void aCapturedHostFunctionStaysForAllLaunchesOfTheGraph() throws InterruptedException {
        CountDownLatch ran = new CountDownLatch(1);
        driver.streams().launchHostFunction(0, CAPTURED, ran::countDown);
        ran.await();
        assertThat(HostFunctions.waiting()).isEqualTo(2); // the function, and what forgets it
        library.destroyObject();
    }
}
