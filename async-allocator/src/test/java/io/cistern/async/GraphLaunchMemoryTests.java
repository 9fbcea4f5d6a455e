package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.cuda.CaptureMode;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// A launch needs the driver's memory: it is looked for as for an allocation.
class GraphLaunchMemoryTests extends AsyncFixture {
    private static final long BLOCK = 64 * MIB;

    private CudaGraph graph;

    @BeforeEach
    void captureAGraph() {
        memory.setCurrent("async");
        try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.RELAXED)) {
            memory.free(memory.allocate(BLOCK, DEVICE, stream), stream);
            graph = capture.endAndInstantiate();
        }
    }

    @AfterEach
    void closeTheGraph() {
        graph.close();
    }

    private long freeBytes() {
        return gpu.memory().freeBytes(DEVICE);
    }

    @Test
    void idleMemoryOfAllocatorsServesTheLaunch() {
        Allocator caching = memory.open("caching");
        memory.free(caching.allocate(freeBytes() - BLOCK / 2, DEVICE, stream), stream);
        assertThat(freeBytes()).isLessThan(BLOCK);
        graph.launch(stream);
        assertThat(caching.reservedBytes(DEVICE)).hasValue(0);
    }

    @Test
    void aFullDeviceIsReportedAsOutOfMemory() {
        long foreign = gpu.memory().allocate(DEVICE, freeBytes() - BLOCK / 2);
        assertThatThrownBy(() -> graph.launch(stream))
                .isInstanceOfSatisfying(DeviceOutOfMemoryException.class, failure -> {
                    assertThat(failure.byteSize()).isEqualTo(BLOCK);
                    assertThat(failure.steps()).isNotEmpty();
                    assertThat(failure.report()).isPresent();
                })
                .hasMessageContaining("to launch CudaGraph");
        gpu.memory().free(DEVICE, foreign);
        graph.launch(stream);
    }
}
