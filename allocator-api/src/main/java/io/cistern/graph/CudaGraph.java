package io.cistern.graph;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Graphs;
import java.util.concurrent.atomic.AtomicBoolean;

/// A graph that was captured and can be launched, as one object: a `CUgraphExec` and its [memory][GraphMemory].
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
/// Its memory goes back after [#close], once the last launch has ended and no capture is under way. The graph
/// may outlive the [DeviceMemory]: it can still be launched, and its memory goes back when it is closed.
///
/// **Threads.** Any thread may call any method at any time. Launches of one graph run one after the other.
public final class CudaGraph implements AutoCloseable {
    private final Graphs graphs;
    private final int device;
    private final long executable;
    private final GraphCapture capture;
    private final GraphMemory memory;
    private final AtomicBoolean closed = new AtomicBoolean();

    /// Ends a capture, makes an executable of its graph, and destroys the graph, whose memory the executable
    /// keeps. Everything that it needs of the Java heap is allocated before the capture ends.
    CudaGraph(Graphs graphs, int device, GraphCapture capture) {
        this.graphs = graphs;
        this.device = device;
        this.capture = capture;
        this.memory = capture.memory();
        long graph = capture.end();
        try {
            executable = graphs.instantiate(device, graph, false);
        } catch (Throwable failure) {
            graphs.destroy(device, graph);
            capture.graphClosed();
            throw failure;
        }
        graphs.destroy(device, graph);
    }

    /// Returns whether a stream is being captured into a graph now, announced or not.
    ///
    /// @param device the stream's device
    /// @throws CudaException if the driver won't tell
    public static boolean isCapturing(DeviceMemory memory, int device, long stream) {
        return memory.driver().graphs().captureId(device, stream) != 0;
    }

    /// Launches the graph on a stream, after the stream's work and earlier launches of this graph. The host
    /// does not wait.
    ///
    /// @param stream a stream of the graph's device
    /// @throws CudaException if the driver refuses
    /// @throws IllegalStateException if the graph is closed
    public void launch(long stream) {
        if (closed.get()) {
            throw new IllegalStateException(this + " is closed");
        }
        graphs.launch(device, executable, stream);
    }

    /// Returns the memory that the graph's work allocated, to be shared with a later capture.
    public GraphMemory memory() {
        return memory;
    }

    /// Returns the driver's handle, a `CUgraphExec`.
    public long handle() {
        return executable;
    }

    /// Returns the device on which the graph runs.
    public int device() {
        return device;
    }

    /// Destroys the graph. A launch under way still runs to its end; this waits for it only if the
    /// [DeviceMemory] is closed. Closing twice does nothing.
    ///
    /// @throws CudaException if the driver refuses
    @Override
    public void close() {
        if (!closed.getAndSet(true)) {
            graphs.destroyExecutable(device, executable);
            capture.graphClosed();
        }
    }

    /// Returns handle and device.
    @Override
    public String toString() {
        return "CudaGraph[0x" + Long.toHexString(executable) + ", device " + device + "]";
    }
}
