package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Graphs;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.spi.TrimMode;
import io.cistern.testkit.DiscoveredCatalog;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;

/// Provides device memory, streams and graphs to tests that check contents. A block holds a sequence of words,
/// and a kernel counts the wrong ones.
abstract class GraphFixture {
    static final int DEVICE = 0;
    static final long KIB = 1 << 10;
    static final long MIB = 1 << 20;

    final CudaDriver driver;
    final Graphs graphs;
    final DeviceMemory memory;
    final long stream;
    final long other;
    private final MemoryKernels kernels;
    private final MemorySegment counter;
    private final List<Long> executables = new ArrayList<>();
    private final List<Long> made = new ArrayList<>();
    private final Set<GraphMemory> memories = new LinkedHashSet<>();

    GraphFixture(CudaDriver driver) {
        this.driver = driver;
        graphs = driver.graphs();
        memory = DeviceMemory.builder(driver).catalog(DiscoveredCatalog.find()).open();
        kernels = MemoryKernels.load(driver, DEVICE);
        counter = driver.memory().allocateHost(DEVICE, Long.BYTES);
        stream = driver.streams().create(DEVICE);
        other = driver.streams().create(DEVICE);
    }

    @AfterEach
    void endAll() throws InterruptedException {
        endCapture(stream);
        endCapture(other);
        List.copyOf(executables).forEach(this::drop);
        List.copyOf(made).forEach(this::dropGraph);
        for (GraphMemory each : memories) {
            awaitTold(each);
        }
        memory.close(); // ends announced captures, so that the device can be waited for
        driver.devices().synchronize(DEVICE);
        assertThat(memory.allocators()).as("closed and drained").isEmpty();
        driver.streams().destroy(DEVICE, stream);
        driver.streams().destroy(DEVICE, other);
        driver.memory().freeHost(DEVICE, counter);
        kernels.close();
        driver.close();
    }

    /// Ends a capture that a failed test left open, because it would make every later test fail.
    private void endCapture(long captured) {
        if (graphs.captureStatus(DEVICE, captured) == CaptureStatus.NONE) {
            return;
        }
        try {
            graphs.destroy(DEVICE, graphs.endCapture(DEVICE, captured));
        } catch (CudaException over) {
            // The capture has ended, whether it succeeded or failed.
        }
    }

    GraphCapture capture() {
        return GraphCapture.begin(memory, DEVICE, stream, CaptureMode.THREAD_LOCAL);
    }

    GraphCapture capture(GraphMemory shared) {
        return GraphCapture.begin(memory, DEVICE, stream, CaptureMode.THREAD_LOCAL, shared);
    }

    long allocate(long byteSize) {
        return memory.allocate(byteSize, DEVICE, stream);
    }

    /// Ends a capture and makes the graph ready to launch. The next launch frees the blocks that the
    /// graph allocates and keeps.
    long executable(GraphCapture capture) {
        memories.add(capture.memory());
        long graph = capture.end();
        made.add(graph);
        long executable = graphs.instantiate(DEVICE, graph, true);
        executables.add(executable);
        return executable;
    }

    void launch(long executable) {
        graphs.launch(DEVICE, executable, stream);
    }

    /// Destroys an executable graph, and all graphs.
    void destroy(long executable) {
        drop(executable);
        List.copyOf(made).forEach(this::dropGraph);
    }

    private void drop(long executable) {
        if (executables.remove(executable)) {
            graphs.destroyExecutable(DEVICE, executable);
        }
    }

    private void dropGraph(long graph) {
        made.remove(graph);
        graphs.destroy(DEVICE, graph);
    }

    /// Waits until the driver has reported the end of the graphs, and gives their memory back.
    void awaitGone(GraphMemory ended) throws InterruptedException {
        awaitTold(ended);
        assertThat(ended.isGone())
                .as("the driver told that the graphs are gone")
                .isTrue();
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
    }

    /// Waits for the driver's report, which comes asynchronously.
    private static void awaitTold(GraphMemory ended) throws InterruptedException {
        for (int i = 0; i < 10_000 && !ended.isGone(); i++) {
            Thread.sleep(1);
        }
    }

    void write(long address, long byteSize, int first, long on) {
        kernels.writeSequence(address, byteSize / Integer.BYTES, first, on);
    }

    void copy(long target, long source, long byteSize, long on) {
        driver.copies().onDevice(DEVICE, target, source, byteSize, on);
    }

    void assertHolds(long address, long byteSize, int first) {
        counter.set(ValueLayout.JAVA_LONG, 0, 0);
        kernels.countSequenceMismatches(address, byteSize / Integer.BYTES, first, counter.address(), stream);
        driver.streams().synchronize(DEVICE, stream);
        assertThat(counter.get(ValueLayout.JAVA_LONG, 0)).as("wrong words").isZero();
    }

    /// Makes a stream wait for all work enqueued so far on another.
    void follow(long follower, long leader) {
        long event = driver.events().create(DEVICE);
        driver.events().record(DEVICE, event, leader);
        driver.streams().await(DEVICE, follower, event);
        driver.events().destroy(DEVICE, event);
    }

    long reserved(Allocator allocator) {
        return allocator.reservedBytes(DEVICE).orElse(0);
    }
}
