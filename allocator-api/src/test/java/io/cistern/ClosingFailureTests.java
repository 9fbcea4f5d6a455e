package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CaptureMode;
import io.cistern.graph.GraphCapture;
import io.cistern.internal.capture.Captures;
import io.cistern.internal.routing.Route;
import io.cistern.jvm.LogOf;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/// An allocator that throws when it is closed: whoever closes it is told, and calls that are about something else do
/// what they are called for.
final class ClosingFailureTests {
    @RegisterExtension
    private final LogOf frees = new LogOf(Route.class.getName());

    @RegisterExtension
    private final LogOf captures = new LogOf(Captures.class.getName());

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(Catalog.of(List.of(), List.of())).open();
    private final long stream = gpu.streams().create(0);
    private @Nullable Error error;
    private final Allocator broken = memory.open(OpenOptions.made("broken", new BrokenInClosing()));

    private final class BrokenInClosing implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return 256;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public void close() {
            if (error != null) {
                throw error;
            }
            throw new IllegalStateException("in a test");
        }
    }

    @AfterEach
    void itIsClosedAllTheSame() {
        assertThat(broken.isDrained()).isTrue();
        assertThat(memory.allocators()).isEmpty();
        memory.close();
        gpu.close();
    }

    @Test
    void whoClosesItIsTold() {
        assertThatIllegalStateException().isThrownBy(broken::close).withMessage("in a test");
    }

    @Test
    void theFreeOfItsLastBlockSucceeds() {
        long block = broken.allocate(100, 0, stream);
        broken.close();
        memory.free(block, stream);
        assertThat(frees.messages()).containsExactly("allocator broken failed to close when its last block was freed");
    }

    @Test
    void theFreeOfItsLastBlockSucceedsThoughAnErrorIsThrown() {
        error = new LinkageError("in a test");
        theFreeOfItsLastBlockSucceeds();
    }

    @Test
    void whoClosesItIsToldOfAnError() {
        error = new LinkageError("in a test");
        assertThatThrownBy(broken::close).isSameAs(error);
    }

    @Test
    void aCaptureEndsThoughAnErrorIsThrown() {
        error = new LinkageError("in a test");
        aCaptureThatItHadToWaitForEndsWithAGraph();
    }

    @Test
    void aCaptureThatItHadToWaitForEndsWithAGraph() {
        try (GraphCapture capture = GraphCapture.begin(memory, 0, stream, CaptureMode.GLOBAL)) {
            broken.close();
            gpu.graphs().destroy(0, capture.end());
        }
        assertThat(captures.messages()).containsExactly("work that was deferred to the end of a capture failed");
    }
}
