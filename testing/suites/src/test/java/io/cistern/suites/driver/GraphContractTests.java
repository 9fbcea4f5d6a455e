package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.testkit.StreamLatch;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// Executable graphs: launching, updating and destroying them, and the callbacks at their end.
abstract class GraphContractTests extends GraphFixture {
    GraphContractTests(DriverContract suite) {
        super(suite);
    }

    private long filling(long stream, long address, int value) {
        begin(stream, CaptureMode.THREAD_LOCAL);
        fill(address, value, stream);
        return graphOf(stream);
    }

    @Test
    void aLaunchIsBehindTheWorkOfItsStreamAndBeforeWhatFollows() {
        long address = linear(KIB);
        long stream = stream();
        long executable = executable(filling(stream, address, 2));
        StreamLatch latch = latch();
        latch.hold(stream);
        fill(address, 1, stream);
        launch(executable, stream);
        assertThat(driver.streams().isIdle(DEVICE, stream)).isFalse();
        HostBytes seen = host(KIB);
        driver.copies().toHost(DEVICE, seen.segment(), address, KIB, stream);
        fill(address, 3, stream);
        latch.release();
        synchronize(stream);
        assertThat(seen.holdsOnly(2)).isTrue();
        assertThat(holds(address, 3, stream)).isTrue();
    }

    @Test
    void aLaunchIsBehindTheOneBeforeOnAnotherStream() {
        long address = linear(KIB);
        long held = stream();
        long other = stream();
        long executable = executable(filling(held, address, 2));
        StreamLatch latch = latch();
        latch.hold(held);
        launch(executable, held);
        launch(executable, other);
        assertThat(driver.streams().isIdle(DEVICE, other)).isFalse();
        latch.release();
        synchronize(other);
        assertThat(holds(address, 2, held)).isTrue();
    }

    @Test
    void kernelsAreCapturedWithTheirArguments() {
        try (MemoryKernels kernels = MemoryKernels.load(driver, DEVICE)) {
            long address = linear(KIB);
            long stream = captured(CaptureMode.THREAD_LOCAL);
            kernels.writeSequence(address, KIB / Integer.BYTES, 7, stream);
            long executable = executable(graphOf(stream));
            launch(executable, stream);
            HostBytes bytes = host(KIB).readFrom(address, stream);
            assertThat(bytes.words())
                    .isEqualTo(IntStream.range(7, 7 + (int) KIB / Integer.BYTES).toArray());
        }
    }

    @Test
    void anExecutableOutlivesItsGraph() {
        long address = linear(KIB);
        long stream = captured(CaptureMode.THREAD_LOCAL);
        fill(address, 5, stream);
        long graph = graphs.endCapture(DEVICE, stream);
        long executable = executable(graph);
        graphs.destroy(DEVICE, graph);
        launch(executable, stream);
        assertThat(holds(address, 5, stream)).isTrue();
    }

    @Test
    void anUpdatedExecutableDoesWhatTheOtherGraphDoes() {
        long address = linear(2 * KIB);
        long stream = stream();
        long executable = executable(filling(stream, address, 1));
        graphs.update(DEVICE, executable, filling(stream, address, 2));
        launch(executable, stream);
        assertThat(holds(address, 2, stream)).isTrue();
    }

    @Test
    void anExecutableTakesNoGraphOfAnotherShape() {
        long address = linear(KIB);
        long stream = stream();
        long executable = executable(filling(stream, address, 1));
        begin(stream, CaptureMode.THREAD_LOCAL);
        fill(address, 2, stream);
        fill(address, 3, stream);
        long longer = graphOf(stream);
        assertFails(
                () -> graphs.update(DEVICE, executable, longer),
                DriverCall.GRAPH_EXEC_UPDATE,
                CudaResult.GRAPH_EXEC_UPDATE_FAILURE);
        launch(executable, stream);
        assertThat(holds(address, 1, stream)).isTrue();
    }

    @Test
    void aGraphIsBuiltByHandToo() {
        long address = linear(KIB);
        long graph = graphs.create(DEVICE);
        afterwards(() -> graphs.destroy(DEVICE, graph));
        long first = graphs.addFill(DEVICE, graph, List.of(), address, 1, KIB / Integer.BYTES);
        long middle = graphs.addEmpty(DEVICE, graph, List.of(first));
        long last = graphs.addFill(DEVICE, graph, List.of(middle), address, 2, KIB / Integer.BYTES);
        assertThat(graphs.dependencies(DEVICE, last)).containsExactly(middle);
        assertThat(graphs.nodeCount(DEVICE, graph)).isEqualTo(3);
        long stream = stream();
        launch(executable(graph), stream);
        HostBytes bytes = host(KIB).readFrom(address, stream);
        assertThat(bytes.words()).isEqualTo(HostBytes.filledWords(KIB / Integer.BYTES, 2));
    }

    @Test
    void whatIsTiedToAGraphHearsOfItsEndAndThatOfItsExecutables() throws InterruptedException {
        CountDownLatch gone = new CountDownLatch(1);
        long address = linear(KIB);
        long stream = captured(CaptureMode.THREAD_LOCAL);
        graphs.retain(DEVICE, graphs.capturingGraph(DEVICE, stream), gone::countDown);
        fill(address, 1, stream);
        long graph = graphs.endCapture(DEVICE, stream);
        long executable = graphs.instantiate(DEVICE, graph, false);
        graphs.destroy(DEVICE, graph);
        launch(executable, stream);
        synchronize(stream);
        assertThat(gone.getCount()).isOne();
        graphs.destroyExecutable(DEVICE, executable);
        assertThat(gone.await(30, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void whatIsTiedToAnAbandonedCaptureHearsOfItsEnd() throws InterruptedException {
        CountDownLatch gone = new CountDownLatch(1);
        long stream = captured(CaptureMode.THREAD_LOCAL);
        graphs.retain(DEVICE, graphs.capturingGraph(DEVICE, stream), gone::countDown);
        graphs.destroy(DEVICE, graphs.endCapture(DEVICE, stream));
        assertThat(gone.await(30, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void whatIsTiedToAnInvalidCaptureHearsOfItsEnd() throws InterruptedException {
        CountDownLatch gone = new CountDownLatch(1);
        long stream = captured(CaptureMode.RELAXED);
        graphs.retain(DEVICE, graphs.capturingGraph(DEVICE, stream), gone::countDown);
        assertFails(() -> synchronize(stream), DriverCall.STREAM_SYNCHRONIZE, CudaResult.STREAM_CAPTURE_UNSUPPORTED);
        abandon(stream);
        assertThat(gone.await(30, TimeUnit.SECONDS)).isTrue();
    }
}
