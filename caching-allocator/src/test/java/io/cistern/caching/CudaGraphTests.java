package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import io.cistern.testkit.DiscoveredCatalog;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A graph as an object, with `caching` on a small simulated GPU.
final class CudaGraphTests extends PoolFixture {
    CudaGraphTests() {
        super(256 * MIB);
    }

    private CudaGraph captureFillOf(long target, int value) {
        try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
            long scratch = allocate(MIB);
            assertThat(CudaGraph.isCapturing(memory, DEVICE, stream)).isTrue();
            gpu.copies().fillWords(DEVICE, scratch, value, MIB / 4, stream);
            gpu.copies().onDevice(DEVICE, target, scratch, 4, stream);
            free(scratch);
            return capture.endAndInstantiate();
        }
    }

    @Test
    void launchesReadAndWriteTheGraphsOwnMemory() {
        long target = allocate(MIB);
        assertThat(CudaGraph.isCapturing(memory, DEVICE, stream)).isFalse();
        try (CudaGraph graph = captureFillOf(target, 7)) {
            assertThat(graph.memory().reservedBytes(DEVICE)).isPositive();
            graph.launch(stream);
            assertThat(word(target)).isEqualTo(7);
            gpu.copies().fillWords(DEVICE, target, 0, 1, stream);
            graph.launch(stream);
            assertThat(word(target)).isEqualTo(7);
        }
        free(target);
        collect();
    }

    @Test
    void aClosedGraphIsNotLaunchedAndGivesItsMemoryBack() {
        long target = allocate(MIB);
        CudaGraph graph = captureFillOf(target, 1);
        GraphMemory its = graph.memory();
        graph.close();
        graph.close();
        assertThatThrownBy(() -> graph.launch(stream)).isInstanceOf(IllegalStateException.class);
        free(target);
        collect();
        assertThat(its.isGone()).isTrue();
        assertThat(its.reservedBytes(DEVICE)).isZero();
    }

    @ParameterizedTest
    @EnumSource(names = {"GRAPH_EXEC_DESTROY", "GRAPH_DESTROY"})
    void whatTheDriverRefusesToDestroyIsDestroyedByClosingAgain(DriverCall call) {
        long target = allocate(MIB);
        gpu.faults().failOn(call, 0, 2, CudaResult.UNKNOWN);
        CudaGraph graph = captureFillOf(target, 1);
        graph.launch(stream);
        assertThat(word(target)).isOne();
        catchThrowableOfType(CudaException.class, graph::close);
        catchThrowableOfType(CudaException.class, graph::close);
        graph.close();
        free(target);
        collect();
        assertThat(graph.memory().isGone()).isTrue();
        assertThat(gpu.heldObjects()).doesNotContainKey("graphs");
    }

    @Test
    void aGraphGoesWithItsContext() {
        try (SimulatedGpu lost = SimulatedGpu.builder().devices(1).build()) {
            DeviceMemory its =
                    DeviceMemory.builder(lost).catalog(DiscoveredCatalog.find()).open();
            its.setCurrent("caching");
            long on = lost.streams().create(DEVICE);
            CudaGraph graph;
            try (GraphCapture capture = GraphCapture.begin(its, DEVICE, on, CaptureMode.GLOBAL)) {
                its.free(its.allocate(MIB, DEVICE, on), on);
                graph = capture.endAndInstantiate();
            }
            graph.launch(on);
            lost.faults().loseContextOn(DriverCall.GRAPH_EXEC_DESTROY, 0, CudaResult.ILLEGAL_ADDRESS);
            graph.close();
            its.close();
            assertThat(its.allocators()).isEmpty();
        }
    }

    /// The driver tells of the end of a graph in its own time.
    private void collect() {
        for (int i = 0; i < 5000 && memory.allocators().size() > 1; i++) {
            gpu.devices().synchronize(DEVICE);
            memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            Thread.onSpinWait();
        }
    }
}
