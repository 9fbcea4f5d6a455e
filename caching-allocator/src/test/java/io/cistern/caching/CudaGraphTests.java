package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CaptureMode;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.spi.TrimMode;
import org.junit.jupiter.api.Test;

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

    /// The driver tells of the end of a graph in its own time.
    private void collect() {
        for (int i = 0; i < 5000 && memory.allocators().size() > 1; i++) {
            gpu.devices().synchronize(DEVICE);
            memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            Thread.onSpinWait();
        }
    }
}
