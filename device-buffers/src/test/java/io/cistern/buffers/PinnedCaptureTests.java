package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Modules.Grid;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Pinned memory that captured work uses: it is nobody else's while the graph can be launched, whenever it is closed.
@Timeout(60)
final class PinnedCaptureTests {
    private static final int DEVICE = 0;
    private static final int BYTES = 8192;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new DriverSource.Linear())))
            .open();
    private final PinnedMemory pinned = PinnedMemory.of(memory);
    private final long stream = gpu.streams().create(DEVICE);
    private DeviceBuffer device;
    private long graph;
    private GraphMemory ofGraph;

    @BeforeEach
    void allocate() {
        memory.setCurrent("direct");
        device = DeviceBuffer.allocate(memory, BYTES, DEVICE, stream);
    }

    @AfterEach
    void allPinnedMemoryGoesBack() {
        device.close();
        pinned.trim();
        assertThat(pinned.statistics())
                .containsEntry("active_bytes.current", 0L)
                .containsEntry("allocated_bytes.current", 0L);
        memory.close();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private PinnedBuffer filledWith(int value) {
        PinnedBuffer buffer = pinned.allocate(BYTES);
        buffer.segment().fill((byte) value);
        return buffer;
    }

    private void capture(Runnable work) {
        try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
            work.run();
            ofGraph = capture.memory();
            graph = capture.end();
        }
    }

    private void launch() {
        long executable = gpu.graphs().instantiate(DEVICE, graph, false);
        gpu.graphs().launch(DEVICE, executable, stream);
        gpu.streams().synchronize(DEVICE, stream);
        gpu.graphs().destroyExecutable(DEVICE, executable);
    }

    private void destroyGraph() {
        destroy(graph, ofGraph);
    }

    /// The driver tells on a thread of its own that a graph is gone.
    private void destroy(long which, GraphMemory its) {
        gpu.graphs().destroy(DEVICE, which);
        while (!its.isGone()) {
            Thread.onSpinWait();
        }
        memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        gpu.devices().synchronize(DEVICE);
    }

    /// What each launch reads, once somebody else has pinned memory of that size.
    private void assertThatLaunchesRead(int value) {
        try (PinnedBuffer _ = filledWith(99);
                PinnedBuffer copied = pinned.allocate(BYTES)) {
            launch();
            device.copyTo(copied.segment());
            assertThat(copied.segment().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) value);
        }
    }

    /// Has a captured work write to pinned memory that is closed, and tells whether a launch writes to somebody
    /// else's.
    private void assertThatLaunchesSpareOthers(Consumer<PinnedBuffer> work) {
        PinnedBuffer target = pinned.allocate(BYTES);
        capture(() -> work.accept(target));
        target.close();
        try (PinnedBuffer other = filledWith(99)) {
            launch();
            assertThat(other.segment().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 99);
        }
        destroyGraph();
    }

    @Test
    void aLaunchReadsWhatWasClosedInTheCapture() {
        capture(() -> {
            try (PinnedBuffer source = filledWith(7)) {
                device.copyFrom(source, stream, CopyMode.NON_BLOCKING);
            }
        });
        assertThatLaunchesRead(7);
        destroyGraph();
    }

    @Test
    void aLaunchReadsWhatWasClosedAfterTheCapture() {
        PinnedBuffer source = filledWith(7);
        capture(() -> device.copyFrom(source, stream, CopyMode.NON_BLOCKING));
        source.close();
        assertThatLaunchesRead(7);
        destroyGraph();
    }

    @Test
    void aBatchOfCopiesIsNoException() {
        capture(() -> {
            try (PinnedBuffer source = filledWith(7)) {
                new CopyBatch().toDevice(device, source).submit(stream, CopyMode.NON_BLOCKING);
            }
        });
        assertThatLaunchesRead(7);
        destroyGraph();
    }

    @Test
    void aLaunchWritesToNobodyElses() {
        assertThatLaunchesSpareOthers(target -> device.copyTo(target, stream, CopyMode.NON_BLOCKING));
    }

    @Test
    void aKernelWritesToNobodyElses() {
        try (CudaModule module = CudaModule.load(memory, DEVICE, MemoryKernels.ptx())) {
            CudaFunction write = module.function("cistern_write_sequence_u32");
            long words = BYTES / Integer.BYTES;
            assertThatLaunchesSpareOthers(target -> write.launch(Grid.of(1, 1), stream, target, words, 0x07070707));
        }
    }

    @Test
    void itIsIdleOnceTheGraphIsGone() {
        PinnedBuffer source = filledWith(7);
        long address = source.segment().address();
        capture(() -> device.copyFrom(source, stream, CopyMode.NON_BLOCKING));
        source.close();
        assertThat(pinned.trim()).isZero();
        destroyGraph();
        try (PinnedBuffer again = pinned.allocate(BYTES)) {
            assertThat(again.segment().address()).isEqualTo(address);
        }
    }

    @Test
    void afterTheGraphItIsStillItsOwnersUntilClosed() {
        PinnedBuffer source = filledWith(7);
        capture(() -> device.copyFrom(source, stream, CopyMode.NON_BLOCKING));
        destroyGraph();
        assertThatNobodyGets(source);
        source.close();
    }

    private void assertThatNobodyGets(PinnedBuffer taken) {
        try (PinnedBuffer other = pinned.allocate(BYTES)) {
            assertThat(other.segment().address()).isNotEqualTo(taken.segment().address());
        }
    }

    @Test
    void itStaysForTheLastOfSeveralGraphs() {
        PinnedBuffer source = filledWith(7);
        capture(() -> device.copyFrom(source, stream, CopyMode.NON_BLOCKING));
        long first = graph;
        GraphMemory ofFirst = ofGraph;
        capture(() -> device.copyFrom(source, stream, CopyMode.NON_BLOCKING));
        source.close();
        destroy(first, ofFirst);
        assertThatLaunchesRead(7);
        destroyGraph();
    }

    @Test
    void aCaptureThatIsGivenUpKeepsNothing() {
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL);
                PinnedBuffer source = filledWith(7)) {
            device.copyFrom(source, stream, CopyMode.NON_BLOCKING);
        }
        assertThat(pinned.trim()).isEqualTo(BYTES);
    }

    @Test
    void besideACaptureOtherStreamsUseItAsEver() {
        long other = gpu.streams().create(DEVICE);
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
            try (PinnedBuffer source = filledWith(7)) {
                device.copyFrom(source, other, CopyMode.NON_BLOCKING);
            }
        }
        gpu.streams().synchronize(DEVICE, other);
        assertThat(pinned.trim()).isEqualTo(BYTES);
    }

    @Test
    void nothingIsCopiedIfTheDriverWillNotTellOfTheCapture() {
        try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL);
                PinnedBuffer source = filledWith(7)) {
            gpu.faults().failOn(DriverCall.STREAM_GET_CAPTURE_INFO, 0, 1, CudaResult.UNKNOWN);
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> device.copyFrom(source, stream, CopyMode.NON_BLOCKING));
        }
    }

    @Test
    void aBatchWithAnArrayIsRefusedBeforeItsFirstCopy() {
        device.fill((byte) 3);
        gpu.streams().synchronize(DEVICE, stream);
        try (PinnedBuffer source = filledWith(5)) {
            CopyBatch batch =
                    new CopyBatch().toDevice(device, source).toDevice(device, MemorySegment.ofArray(new byte[1]));
            capture(() ->
                    assertThatIllegalStateException().isThrownBy(() -> batch.submit(stream, CopyMode.NON_BLOCKING)));
        }
        assertThatLaunchesRead(3);
        destroyGraph();
    }
}
