package io.cistern.internal.capture;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Captures that end while the driver's own thread reports.
final class CapturesTests {
    private static final int DEVICE = 0;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final Captures captures =
            memory.moduleSupport().attached(Captures.class).orElseThrow();

    @AfterEach
    void close() {
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    /// The driver's thread has begun to report the end of the graph, and the operating system lets it rest.
    @Test
    void theMemoryOfAGraphThatWasNeverLaunchedIsReleasedByItsClose() throws InterruptedException {
        long stream = gpu.streams().create(DEVICE);
        GraphBlocks blocks = captures.newMemory();
        StreamCapture capture = captures.begin(DEVICE, stream, blocks);
        gpu.graphs().beginCapture(DEVICE, stream, CaptureMode.GLOBAL);
        long graph = gpu.graphs().endCapture(DEVICE, stream);
        captures.endWithNew(capture, graph);
        Thread reporting = Thread.ofPlatform().unstarted(capture.whenGone);
        Runnable destroying = () -> {
            reporting.start();
            while (reporting.isAlive() && reporting.getState() != Thread.State.BLOCKED) {
                Thread.onSpinWait();
            }
        };
        synchronized (blocks) {
            captures.graphClosed(capture, destroying, false);
            assertThat(blocks.isGone()).isTrue();
        }
        reporting.join();
        gpu.graphs().destroy(DEVICE, graph);
        gpu.streams().destroy(DEVICE, stream);
    }
}
