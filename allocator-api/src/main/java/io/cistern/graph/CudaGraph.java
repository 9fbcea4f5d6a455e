package io.cistern.graph;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Graphs;
import io.cistern.internal.names.UntilDone;
import io.cistern.internal.reclaim.OutOfMemoryHandler;

/// A captured graph that can be launched: a `CUgraphExec` and its [memory][GraphMemory].
///
/// ```java
/// try (GraphCapture capture = GraphCapture.begin(memory, device, stream, CaptureMode.GLOBAL)) {
///     work(stream);
///     try (CudaGraph graph = capture.endAndInstantiate()) {
///         graph.launch(stream);
///     }
/// }
/// ```
///
/// The graph's memory is released after [#close], once the last launch has ended. The graph may outlive the
/// [DeviceMemory]: it can still be launched, and its memory is released when the graph is closed.
///
/// A block that was allocated in the capture and not freed there has the same address in each launch, and
/// holds the results of the last launch.
///
/// **Threads.** Any thread may call any method at any time. Launches of one graph run one at a time.
public final class CudaGraph implements AutoCloseable {
    private final Graphs graphs;
    private final int device;
    private final long executable;
    private final GraphCapture capture;
    private final GraphMemory memory;
    private final OutOfMemoryHandler outOfMemory;
    private final UntilDone ended = new UntilDone();
    private volatile boolean closed;

    // Made in advance: a graph is closed in a full Java heap, too.
    private final Runnable destroying = this::destroy;
    private final Runnable closing = this::closeOnce;

    /// The captured graph, which the driver no longer needs; 0 once it is destroyed.
    private volatile long template;

    private volatile boolean isExecutableDestroyed;

    /// Whether a launch may have allocated the graph's memory.
    private volatile boolean wasLaunched;

    /// Ends a capture, makes an executable of its graph, and destroys the graph, whose memory the executable
    /// keeps. All Java objects that it needs are allocated before the capture ends.
    CudaGraph(Graphs graphs, OutOfMemoryHandler outOfMemory, int device, GraphCapture capture) {
        this.outOfMemory = outOfMemory;
        this.graphs = graphs;
        this.device = device;
        this.capture = capture;
        this.memory = capture.memory();
        long graph = capture.end();
        try {
            executable = graphs.instantiate(device, graph, true);
        } catch (Throwable failure) {
            capture.graphFailed(graph);
            throw failure;
        }
        template = graph;
        try {
            destroyTemplate();
        } catch (CudaException refused) {
            // The executable is usable, and its close tries again.
        }
    }

    private void destroyTemplate() {
        if (template != 0) {
            graphs.destroy(device, template);
            template = 0;
        }
    }

    /// Returns whether a stream is being captured into a graph, whether or not the capture was announced.
    ///
    /// @param device the stream's device
    /// @throws CudaException if the driver doesn't report whether the stream is being captured
    public static boolean isCapturing(DeviceMemory memory, int device, long stream) {
        return memory.driver().graphs().captureId(device, stream) != 0;
    }

    /// Launches the graph on a stream. The launch runs after all work enqueued on the stream so far, and
    /// after earlier launches of this graph. The host does not wait.
    ///
    /// @param stream a stream of the graph's device
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if the driver has no memory for the graph, after all
    ///     reclaim steps
    /// @throws CudaException if the driver refuses the launch for another reason
    /// @throws IllegalStateException if the graph is closed
    public void launch(long stream) {
        if (closed) {
            throw new IllegalStateException(this + " is closed");
        }
        try {
            graphs.launch(device, executable, stream);
        } catch (CudaException failure) {
            Runnable again = () -> graphs.launch(device, executable, stream);
            outOfMemory.callAgain(
                    failure, device, bytes(), stream, "the driver has no memory to launch " + this, again);
        }
        wasLaunched = true; // a refused launch allocates nothing
    }

    /// Launches the graph on a stream: see [#launch(long)].
    public void launch(CudaStream stream) {
        launch(stream.handle());
    }

    /// Returns the bytes that a launch may need.
    private long bytes() {
        return Math.max(1, memory.statistics(device).requestedPeakBytes());
    }

    /// Returns the graph's memory, which a later capture can share.
    public GraphMemory memory() {
        return memory;
    }

    /// Returns the driver's handle, a `CUgraphExec`.
    public long handle() {
        wasLaunched = true; // the caller may launch it
        return executable;
    }

    /// Returns the device on which the graph runs.
    public int device() {
        return device;
    }

    /// Destroys the graph. A launch that is under way still runs to completion; this call waits for the
    /// launch only if the [DeviceMemory] is already closed. A graph that was never launched keeps the
    /// addresses of its live blocks until they are freed. Closing twice does nothing. If the context is
    /// lost, so is the graph, and this call does not throw.
    ///
    /// @throws CudaException if the driver refuses to destroy the graph. The graph can't be launched any
    ///     more; close it again to retry
    @Override
    public void close() {
        closed = true;
        ended.run(closing);
    }

    private void closeOnce() {
        capture.closeGraph(destroying, wasLaunched);
    }

    private void destroy() {
        if (!isExecutableDestroyed) {
            graphs.destroyExecutable(device, executable);
            isExecutableDestroyed = true;
        }
        destroyTemplate();
    }

    /// Returns the handle and the device.
    @Override
    public String toString() {
        return "CudaGraph[0x" + Long.toHexString(executable) + ", device " + device + "]";
    }
}
