package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.graph.GraphCapture;
import io.cistern.spi.TrimMode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Blocks that are freed after an event of a capture, which no stream of the program needs to join again.
@Timeout(60)
class EventFreesInCapturesTests extends AsyncFixture {
    private final long event = gpu.events().create(DEVICE);

    @AfterEach
    void endEvent() {
        gpu.events().destroy(DEVICE, event);
    }

    private void use(long address) {
        gpu.copies().fillBytes(DEVICE, address, (byte) 1, MIB, stream);
        gpu.events().record(DEVICE, event, stream);
    }

    private void launchTwice(GraphCapture capture) {
        long graph = capture.end();
        long executable = gpu.graphs().instantiate(DEVICE, graph, true);
        for (int launch = 0; launch < 2; launch++) {
            gpu.graphs().launch(DEVICE, executable, stream);
            gpu.streams().synchronize(DEVICE, stream);
        }
        gpu.graphs().destroyExecutable(DEVICE, executable);
        gpu.graphs().destroy(DEVICE, graph);
        while (!capture.memory().isGone()) {
            Thread.onSpinWait();
        }
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(gpu.graphs().memory(DEVICE, GraphMemoryAttribute.USED_CURRENT))
                .isZero();
    }

    @ParameterizedTest
    @CsvSource({"async, 1", "async, 3", "caching, 1", "caching, 3"})
    void theCaptureEndsAndTheGraphIsLaunched(String spec, int blocks) {
        memory.setCurrent(spec);
        try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
            for (int block = 0; block < blocks; block++) {
                long address = memory.allocate(MIB, DEVICE, stream);
                use(address);
                memory.freeAfter(address, event);
            }
            launchTwice(capture);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"async", "caching"})
    void soDoesOneThatClosesABufferFromOutside(String spec) {
        memory.setCurrent(spec);
        DeviceBuffer buffer = DeviceBuffer.allocate(memory, MIB, DEVICE, stream);
        try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
            use(buffer.address());
            buffer.closeAfter(event);
            launchTwice(capture);
        }
    }

    /// The stream that waits for the first event is in the capture until that ends.
    @ParameterizedTest
    @ValueSource(strings = {"async", "caching"})
    void anEventOfAnotherStreamMeanwhileIsAnOrdinaryOne(String spec) {
        memory.setCurrent(spec);
        long outside = memory.allocate(MIB, DEVICE, other);
        try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
            long address = memory.allocate(MIB, DEVICE, stream);
            use(address);
            memory.freeAfter(address, event);
            long ordinary = gpu.events().create(DEVICE);
            gpu.events().record(DEVICE, ordinary, other);
            memory.freeAfter(outside, ordinary);
            gpu.events().destroy(DEVICE, ordinary);
            launchTwice(capture);
        }
    }
}
