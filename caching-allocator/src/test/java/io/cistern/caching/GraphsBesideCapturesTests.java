package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CaptureMode;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Memory of graphs that are gone goes back although another stream is captured all the time.
final class GraphsBesideCapturesTests extends PoolFixture {
    private static final int GRAPHS = 100;

    GraphsBesideCapturesTests() {
        super(64 * MIB);
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:source=linear", "direct"})
    void graphsThatFollowEachOtherNeedTheMemoryOfOne(String spec) throws InterruptedException {
        memory.setCurrent(spec);
        long other = gpu.streams().create(DEVICE);
        long result;
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, other, CaptureMode.RELAXED)) {
            result = memory.allocate(MIB, DEVICE, other);
            for (int i = 0; i < GRAPHS; i++) {
                launchOne();
            }
        }
        assertThat(memory.liveBlocks()).hasSize(1);
        memory.free(result, other);
    }

    private void launchOne() throws InterruptedException {
        CudaGraph graph;
        try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.RELAXED)) {
            long block = allocate(MIB);
            gpu.copies().fillBytes(DEVICE, block, (byte) 1, MIB, stream);
            free(block);
            graph = capture.endAndInstantiate();
        }
        graph.launch(stream);
        graph.close();
        while (!graph.memory().isGone()) {
            Thread.sleep(1); // the driver tells in its own time
        }
    }
}
