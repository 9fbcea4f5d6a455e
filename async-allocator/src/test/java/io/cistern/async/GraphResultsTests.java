package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.cuda.CaptureMode;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.spi.TrimMode;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Blocks that the launch of a graph left, which outlive the graph.
class GraphResultsTests extends AsyncFixture {
    private static final long BLOCK = 16 * MIB;

    private long freeBytes;
    private long result;

    @BeforeEach
    void launchAndDestroyAGraph() throws InterruptedException {
        memory.setCurrent("async");
        freeBytes = gpu.memory().freeBytes(DEVICE);
        GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL);
        GraphMemory graphs = capture.memory();
        result = memory.allocate(BLOCK, DEVICE, stream);
        long graph = capture.end();
        long executable = gpu.graphs().instantiate(DEVICE, graph, true);
        gpu.graphs().launch(DEVICE, executable, stream);
        gpu.streams().synchronize(DEVICE, stream);
        gpu.graphs().destroyExecutable(DEVICE, executable);
        gpu.graphs().destroy(DEVICE, graph);
        while (!graphs.isGone()) {
            Thread.onSpinWait(); // the driver tells in its own time
        }
        memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
    }

    private void freeBehindHeldWork() {
        latch.hold(stream);
        gpu.copies().fillBytes(DEVICE, result, (byte) 1, BLOCK, stream);
        memory.free(result, stream);
    }

    @Test
    void theFreeComesBehindTheUseOnAnotherStream() {
        latch.hold(other);
        gpu.copies().fillBytes(DEVICE, result, (byte) 1, BLOCK, other);
        memory.recordUse(result, other);
        memory.free(result, stream); // a misuse, unless it waits
        latch.release();
    }

    @Test
    void theirMemoryIsTheDevicesAgainWhenTheLastIsFreed() {
        memory.free(result, stream);
        assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(freeBytes);
    }

    @Test
    void aTrimThatFindsItTakesNoLessFromOtherAllocators() {
        Allocator caching = memory.open("caching");
        memory.free(caching.allocate(MIB, DEVICE, stream), stream);
        freeBehindHeldWork();
        letFinish(stream);
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(caching.reservedBytes(DEVICE)).hasValue(0);
        assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(freeBytes);
    }

    @Test
    void whatWorkStillUsesThenIsTheDevicesAgainAfterATrim() {
        freeBehindHeldWork();
        assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(freeBytes - BLOCK);
        letFinish(stream);
        memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(freeBytes);
    }
}
