package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Frees of a graph's memory that the driver refuses: what the launch left is freed when the graphs are gone.
class GraphAllocationsTests {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final GraphAllocations allocations = new GraphAllocations(gpu);
    private final long stream = gpu.streams().create(DEVICE);
    private long block;

    @BeforeEach
    void allocateInCapture() {
        gpu.graphs().beginCapture(DEVICE, stream, CaptureMode.RELAXED);
        block = allocations.allocate(MIB, DEVICE, stream);
    }

    @AfterEach
    void nothingIsLeft() {
        allocations.graphsGone();
        assertThat(usedBytes()).isZero();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private void launchOnce() {
        long graph = gpu.graphs().endCapture(DEVICE, stream);
        long executable = gpu.graphs().instantiate(DEVICE, graph, true);
        gpu.graphs().launch(DEVICE, executable, stream);
        gpu.streams().synchronize(DEVICE, stream);
        assertThat(usedBytes()).as("the launch left its block").isPositive();
        gpu.graphs().destroyExecutable(DEVICE, executable);
        gpu.graphs().destroy(DEVICE, graph);
    }

    private long usedBytes() {
        return gpu.graphs().memory(DEVICE, GraphMemoryAttribute.USED_CURRENT);
    }

    private void free() {
        allocations.free(block, MIB, DEVICE, stream);
    }

    @Test
    void aFreeRefusedInTheCaptureComesWhenTheGraphsAreGone() {
        gpu.faults().failOn(DriverCall.MEM_FREE_ASYNC, 0, 1, CudaResult.UNKNOWN);
        free();
        launchOnce();
    }

    @Test
    void afterARefusalTheEndOfTheGraphsIsToldAgain() {
        launchOnce();
        free();
        gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(allocations::graphsGone).isInstanceOf(CudaException.class);
        assertThat(usedBytes()).isPositive();
    }

    private void endStream() {
        allocations.streamClosing(DEVICE, stream);
        gpu.streams().destroy(DEVICE, stream);
    }

    @Test
    void aBlockFreedOnAnEndedStreamGoesWithTheGraphs() {
        launchOnce();
        endStream();
        free();
    }

    @Test
    void aBlockFreedOnAnEndedStreamAfterTheGraphsGoesAtTheClose() {
        launchOnce();
        allocations.graphsGone();
        endStream();
        free();
        allocations.close();
        gpu.devices().synchronize(DEVICE);
        assertThat(usedBytes()).isZero();
    }

    @Test
    void aBlockIsNotFreedOnALaterStreamOfTheHandle() {
        launchOnce();
        gpu.keepBusy(DEVICE, stream, 1_000_000);
        gpu.copies().fillBytes(DEVICE, block, (byte) 1, MIB, stream);
        endStream();
        assertThat(gpu.streams().create(DEVICE)).isEqualTo(stream);
        gpu.graphs().beginCapture(DEVICE, stream, CaptureMode.RELAXED);
        allocations.free(allocations.allocate(MIB, DEVICE, stream), MIB, DEVICE, stream);
        gpu.graphs().destroy(DEVICE, gpu.graphs().endCapture(DEVICE, stream));
        allocations.graphsGone();
        free();
        assertThat(usedBytes()).isPositive();
    }
}
