package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CaptureMode;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Device memory is closed while graphs exist, or while the driver has not told yet that they are gone: their
/// memory stays as long as they do, and is not lost.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class GraphsAndCloseTests extends PoolFixture {
    GraphsAndCloseTests() {
        super(1024 * MIB);
    }

    /// @param target where each launch copies a word to, through memory of the graph
    private GraphCapture captureOfFill(long target) {
        GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.THREAD_LOCAL);
        long scratch = allocate(MIB);
        gpu.copies().fillWords(DEVICE, scratch, 7, 1, stream);
        gpu.copies().onDevice(DEVICE, target, scratch, Integer.BYTES, stream);
        free(scratch);
        return capture;
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:source=linear"})
    void aGraphIsLaunchedAfterTheCloseAndGivesItsMemoryBack(String spec) {
        memory.setCurrent(spec);
        long target = gpu.memory().allocate(DEVICE, MIB);
        CudaGraph graph = captureOfFill(target).endAndInstantiate();
        memory.close();
        assertThat(graph.memory().reservedBytes(DEVICE)).isPositive();
        graph.launch(stream);
        assertThat(word(target)).isEqualTo(7);
        graph.close();
        assertThat(graph.memory().reservedBytes(DEVICE)).isZero();
        gpu.memory().free(DEVICE, target);
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:source=linear"})
    void aGraphThatIsDestroyedAfterTheCloseIsCollected(String spec) throws InterruptedException {
        memory.setCurrent(spec);
        long target = gpu.memory().allocate(DEVICE, MIB);
        GraphCapture capture = captureOfFill(target);
        long graph = capture.end();
        memory.close();
        assertThat(capture.memory().reservedBytes(DEVICE)).isPositive();
        gpu.graphs().destroy(DEVICE, graph);
        while (!capture.memory().isGone()) {
            Thread.sleep(1);
        }
        assertThat(GraphMemory.collect(memory)).isTrue();
        assertThat(capture.memory().reservedBytes(DEVICE)).isZero();
        gpu.memory().free(DEVICE, target);
    }

    /// The driver tells on the thread of host functions, and one of these keeps that busy.
    @Test
    void theCloseWaitsUntilTheDriverTellsOfClosedGraphs() throws InterruptedException {
        memory.setCurrent("caching");
        long target = gpu.memory().allocate(DEVICE, MIB);
        CountDownLatch goesOn = new CountDownLatch(1);
        gpu.streams().launchHostFunction(DEVICE, gpu.streams().create(DEVICE), () -> await(goesOn));
        CudaGraph graph = captureOfFill(target).endAndInstantiate();
        graph.launch(stream);
        graph.close();
        Thread closing = Thread.ofPlatform().start(memory::close);
        while (closing.isAlive() && !isWaiting(closing)) {
            Thread.sleep(1);
        }
        goesOn.countDown();
        closing.join();
        assertThat(graph.memory().isGone()).isTrue();
        assertThat(memory.allocators()).isEmpty();
        gpu.memory().free(DEVICE, target);
        assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(1024 * MIB);
    }

    private static boolean isWaiting(Thread thread) {
        return thread.getState() == Thread.State.WAITING || thread.getState() == Thread.State.TIMED_WAITING;
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
