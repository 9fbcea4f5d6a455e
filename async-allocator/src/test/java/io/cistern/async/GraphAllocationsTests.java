package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.StreamOrder;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

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

    private long reservedBytes() {
        return gpu.graphs().memory(DEVICE, GraphMemoryAttribute.RESERVED_CURRENT);
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
    void closingFreesWhatWasRefused() {
        launchOnce();
        free();
        gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, 2, CudaResult.UNKNOWN);
        assertThatThrownBy(allocations::graphsGone).isInstanceOf(CudaException.class);
        assertThatThrownBy(allocations::close).isInstanceOf(CudaException.class);
        allocations.close();
        assertThat(usedBytes()).isZero();
    }

    @Test
    void aBlockThatWasFreedIsForgotten() {
        launchOnce();
        free();
        allocations.graphsGone();
        long asked = gpu.calls().of(DriverCall.MEM_GET_ADDRESS_RANGE);
        allocations.graphsGone();
        assertThat(gpu.calls().of(DriverCall.MEM_GET_ADDRESS_RANGE)).isEqualTo(asked);
    }

    /// The driver keeps it for the next launch.
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void memoryThatNoLaunchUsesGoesBackWithATrimOrAClose(boolean closes) {
        free();
        long graph = gpu.graphs().endCapture(DEVICE, stream);
        long executable = gpu.graphs().instantiate(DEVICE, graph, false);
        gpu.graphs().launch(DEVICE, executable, stream);
        gpu.streams().synchronize(DEVICE, stream);
        long reserved = reservedBytes();
        assertThat(reserved).isPositive();
        if (closes) {
            allocations.close();
        } else {
            AsyncAllocator async = AsyncFixture.async(gpu, 1, AsyncOptions.USUAL, mock(StreamOrder.class));
            assertThat(async.trim(DEVICE, 1)).isZero();
            assertThat(async.trim(DEVICE, 0)).isEqualTo(reserved);
        }
        assertThat(reservedBytes()).isZero();
        gpu.graphs().destroyExecutable(DEVICE, executable);
        gpu.graphs().destroy(DEVICE, graph);
    }

    @ParameterizedTest
    @CsvSource({"OUT_OF_MEMORY, no memory for a graph", "UNKNOWN, CUDA_ERROR_UNKNOWN"})
    void aRefusedAllocationSaysWhy(CudaResult refusal, String says) {
        gpu.faults().failOn(DriverCall.MEM_ALLOC_ASYNC, 0, 1, refusal);
        assertThatThrownBy(() -> allocations.allocate(MIB, DEVICE, stream)).hasMessageContaining(says);
        gpu.graphs().destroy(DEVICE, gpu.graphs().endCapture(DEVICE, stream));
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

    @ParameterizedTest
    @EnumSource(names = {"MEM_GET_ADDRESS_RANGE", "MEM_FREE_ASYNC"})
    void aBlockThatTheDriverRefusesToFreeGoesAtTheClose(DriverCall refused) {
        launchOnce();
        allocations.graphsGone();
        gpu.faults().failOn(refused, 0, 1, CudaResult.UNKNOWN);
        free();
        assertThat(usedBytes()).isPositive();
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
