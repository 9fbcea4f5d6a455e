package io.cistern.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.Graphs;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// PyTorch's graphs: it tells of a capture and of the end of a graph, by a pool, and never of the graph itself.
final class CapturedPoolsTests {
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final Graphs graphs = gpu.graphs();
    private final long stream = gpu.streams().create(0, true, 0);
    private final TorchCommands torch = new TorchCommands(memory);

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    @Test
    void aGraphKeepsItsMemoryUntilPyTorchTellsThatItIsGone() {
        long executable = capture("1/0");
        long inGraph = MIB * 4;

        assertThat(reserved()).isGreaterThanOrEqualTo(inGraph);
        graphs.launch(0, executable, stream);
        torch.run("trim");
        assertThat(reserved()).as("the graph can be launched again").isGreaterThanOrEqualTo(inGraph);
        torch.run("pool_released 0 1/0");
        gpu.streams().synchronize(0, stream);
        torch.run("trim");
        assertThat(reserved()).isZero();
    }

    @Test
    void graphsOfOnePoolShareItUntilTheLastIsGone() {
        capture("0/1");
        long ofOne = reserved();
        capture("0/1");
        assertThat(reserved()).isEqualTo(ofOne);
        torch.run("pool_released 0 0/1");
        torch.run("trim");
        assertThat(reserved()).isEqualTo(ofOne);
        torch.run("pool_released 0 0/1");
        torch.run("trim");
        assertThat(reserved()).isZero();
    }

    @Test
    void graphsOfTwoPoolsShareNothing() {
        capture("1/0");
        long ofOne = reserved();
        capture("2/0");
        assertThat(reserved()).isEqualTo(2 * ofOne);
    }

    @Test
    void aCaptureThatFailedEndsWithTheNextOneOnItsStream() {
        torch.run("capture_begins 0 1/0 " + stream);
        graphs.beginCapture(0, stream, CaptureMode.GLOBAL);
        memory.free(memory.allocate(MIB, 0, stream), stream);
        graphs.destroy(0, graphs.endCapture(0, stream)); // PyTorch tells nobody

        capture("2/0");
        torch.run("pool_released 0 2/0");
        torch.run("pool_released 0 1/0");
        torch.run("trim");
        assertThat(reserved()).isZero();
        assertThat(memory.moduleSupport().isCapturing(0)).isFalse();
    }

    @Test
    void theEndOfACaptureThatNeverBeganIsRefused() {
        assertThatNullPointerException()
                .isThrownBy(() -> torch.run("capture_ends 0 9/0"))
                .withMessageContaining("no capture");
    }

    /// As `torch.cuda.graph` does: the graph itself goes once there is an executable.
    private long capture(String pool) {
        torch.run("capture_begins 0 " + pool + " " + stream);
        graphs.beginCapture(0, stream, CaptureMode.GLOBAL);
        long block = memory.allocate(4 * MIB, 0, stream);
        gpu.copies().fillBytes(0, block, (byte) 1, 4 * MIB, stream);
        memory.free(block, stream);
        long graph = graphs.endCapture(0, stream);
        torch.run("capture_ends 0 " + pool);
        long executable = graphs.instantiate(0, graph, true);
        graphs.destroy(0, graph);
        return executable;
    }

    private long reserved() {
        memory.trim(0, 0, TrimMode.WITHOUT_WAITING);
        return memory.statistics(0).reservedBytes().orElseThrow();
    }
}
