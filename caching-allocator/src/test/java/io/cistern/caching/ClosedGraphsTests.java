package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.CudaStream;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.cuda.CaptureMode;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

/// When the memory of closed graphs is back, though the driver reports their end later.
final class ClosedGraphsTests extends PoolFixture {
    private final CudaStream graphs = CudaStream.ofForeign(memory, DEVICE, stream);
    private final MemoryPool pool =
            builder().spec("caching").limitBytes(2 * MIB).open();

    ClosedGraphsTests() {
        super(64 * MIB);
    }

    /// Launches a graph that keeps two blocks, waits for it, and closes it.
    private void runGraph() {
        try (Scope _ = pool.enter()) {
            long before = memory.allocate(MIB, DEVICE, stream);
            CudaGraph graph;
            try (GraphCapture capture = GraphCapture.begin(graphs, CaptureMode.GLOBAL)) {
                memory.free(memory.allocate(MIB, DEVICE, stream), stream);
                memory.free(before, stream);
                graph = capture.endAndInstantiate();
            }
            graph.launch(graphs);
            graphs.synchronize();
            graph.close();
        }
    }

    @RepeatedTest(50)
    void aTrimThatWaitsGivesTheirMemoryBack() {
        runGraph();
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(pool.statistics(DEVICE).requestedBytes()).isZero();
        pool.close();
        assertThat(pool.isDrained()).isTrue();
    }

    @RepeatedTest(50)
    void aCollectionGivesTheirMemoryBack() {
        runGraph();
        for (int tries = 0; !GraphMemory.collect(memory); tries++) { // on a busy machine the driver's thread comes late
            assertThat(tries).isLessThan(500);
        }
        assertThat(pool.statistics(DEVICE).requestedBytes()).isZero();
    }

    @RepeatedTest(50)
    void theCloseOfAPoolGivesTheirMemoryBack() {
        runGraph();
        pool.close();
        assertThat(pool.isDrained()).isTrue();
    }

    @RepeatedTest(50)
    void aRequestThatTheLimitWouldRefuseGetsTheirMemory() {
        runGraph();
        memory.free(pool.allocate(2 * MIB, DEVICE, stream), stream);
    }

    @Test
    void theReportOfARefusalSaysWhatGraphsKeep() {
        CudaGraph graph;
        try (Scope _ = pool.enter();
                GraphCapture capture = GraphCapture.begin(graphs, CaptureMode.GLOBAL)) {
            memory.free(memory.allocate(MIB, DEVICE, stream), stream);
            graph = capture.endAndInstantiate();
        }
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> pool.allocate(2 * MIB, DEVICE, stream))
                .satisfies(refused -> assertThat(refused.report().orElseThrow().text())
                        .contains("unusable: 1048576 bytes idle, in a captured graph, kept by " + graph.memory()
                                + ": close its graphs"));
        graph.close();
    }

    @Test
    void aStreamIsNotClosedDuringItsCapture() {
        CudaStream captured = CudaStream.open(memory, DEVICE);
        GraphCapture capture = GraphCapture.begin(captured, CaptureMode.GLOBAL);
        assertThatIllegalStateException()
                .isThrownBy(captured::close)
                .withMessageContaining("end or close its GraphCapture first, then close the stream");
        assertThat(captured.handle()).as("it is still open").isNotZero();
        capture.close();
        captured.close();
        captured.close();
        assertThat(pool.sleep(SleepMode.DROP)).isNotNull();
    }
}
