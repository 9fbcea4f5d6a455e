package io.cistern.graph;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Graphs;
import io.cistern.internal.capture.Captures;
import io.cistern.internal.capture.StreamCapture;
import io.cistern.internal.names.Devices;
import io.cistern.internal.reclaim.OutOfMemoryHandler;

/// A capture of a stream into a CUDA graph, announced to all allocators. Memory that is allocated on this
/// stream, or on a stream that joins the capture, is [GraphMemory], which lives as long as the graph.
///
/// ```java
/// try (GraphCapture capture = GraphCapture.begin(memory, device, stream, CaptureMode.GLOBAL)) {
///     long scratch = memory.allocate(bytes, device, stream);
///     launch(scratch, stream);
///     memory.free(scratch, stream);
///     graph = capture.end();
/// }
/// ```
///
/// During a capture, other threads may allocate as usual. If memory runs out, the [reclaim
/// steps][io.cistern.diagnostics.ReclaimStep] are tried as usual, but none waits for captured streams, and
/// no live memory moves. On the captured streams, a freed block is reused only if the graph orders the new
/// use after the old one. Inside a [io.cistern.Scope], a capture takes its memory from the scope's pool or
/// allocator.
///
/// **Threads.** One thread at a time. In modes other than [CaptureMode#RELAXED], only the OS thread that
/// began the capture may end it, so a virtual thread must not block before the end.
public final class GraphCapture implements AutoCloseable {
    private final DeviceMemory memory;
    private final Captures captures;
    private final Graphs graphs;
    private final StreamCapture capture;
    private boolean ended;

    private GraphCapture(DeviceMemory memory, Captures captures, Graphs graphs, StreamCapture capture) {
        this.memory = memory;
        this.captures = captures;
        this.graphs = graphs;
        this.capture = capture;
    }

    /// Begins to capture a stream into a graph that has memory of its own.
    ///
    /// @param stream the stream to capture; not the legacy default stream
    /// @throws CudaException as for [Graphs#beginCapture]
    /// @throws IndexOutOfBoundsException if there is no such device
    public static GraphCapture begin(DeviceMemory memory, int device, long stream, CaptureMode mode) {
        return begin(memory, device, stream, mode, GraphMemory.of(memory));
    }

    /// Begins to capture a stream into a graph: see [#begin(DeviceMemory, int, long, CaptureMode)].
    ///
    /// @throws IllegalStateException if the stream is closed
    public static GraphCapture begin(CudaStream stream, CaptureMode mode) {
        return begin(stream.memory(), stream.device(), stream.handle(), mode);
    }

    /// Begins to capture a stream into a graph that shares the memory of other graphs: see [GraphMemory].
    ///
    /// @param stream the stream to capture; not the legacy default stream
    /// @throws CudaException as for [Graphs#beginCapture]
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if the graphs of `shared` are gone
    public static GraphCapture begin(
            DeviceMemory memory, int device, long stream, CaptureMode mode, GraphMemory shared) {
        Captures captures = GraphMemory.captures(memory);
        Graphs graphs = memory.driver().graphs();
        StreamCapture capture = captures.begin(checked(memory, device), stream, shared.blocks());
        try {
            GraphCapture begun = new GraphCapture(memory, captures, graphs, capture); // before the capture
            graphs.beginCapture(device, stream, mode);
            return begun;
        } catch (Throwable failure) {
            captures.end(capture, 0);
            throw failure;
        }
    }

    /// Begins to capture a stream into a graph: see [#begin(DeviceMemory, int, long, CaptureMode,
    /// GraphMemory)].
    ///
    /// @throws IllegalStateException if the stream is closed
    public static GraphCapture begin(CudaStream stream, CaptureMode mode, GraphMemory shared) {
        return begin(stream.memory(), stream.device(), stream.handle(), mode, shared);
    }

    /// Announces a capture that other code begins. Call this right before the capture begins. A call right
    /// after the capture begins is also allowed if, in between, no other thread uses the device through
    /// Cistern and nothing is allocated on the stream. Until the capture is announced, other threads may
    /// wait for the device, which would invalidate the capture. A program that does not announce a capture
    /// breaks the contract: the stream would get memory that other work uses between two launches of the
    /// graph.
    ///
    /// @return the memory of the graph that the capture will make
    /// @throws IndexOutOfBoundsException if there is no such device
    public static GraphMemory announce(DeviceMemory memory, int device, long stream) {
        GraphMemory own = GraphMemory.of(memory);
        announce(memory, device, stream, own);
        return own;
    }

    /// Announces a capture that other code begins, for a graph that shares the memory of other graphs.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if the graphs of `shared` are gone
    public static void announce(DeviceMemory memory, int device, long stream, GraphMemory shared) {
        GraphMemory.captures(memory).announce(checked(memory, device), stream, shared.blocks());
    }

    /// Announces that an [announced][#announce] capture has ended. Call this before the stream is destroyed
    /// or captured again.
    ///
    /// @param stream the stream on which the capture began
    /// @param graph the captured graph; its memory is kept until the graph and its executables are gone. 0
    ///     if the capture failed or its graph is already destroyed
    /// @throws IllegalStateException if no capture of that stream was announced
    /// @throws CudaException if the driver refuses to notify Cistern of the graph's end; the memory then
    ///     never goes back
    public static void announceEnd(DeviceMemory memory, int device, long stream, long graph) {
        Captures captures = GraphMemory.captures(memory);
        StreamCapture capture = captures.announced(device, stream);
        if (graph == 0) {
            capture.memory().mayRun();
        }
        captures.end(capture, graph);
    }

    private static int checked(DeviceMemory memory, int device) {
        return Devices.check(device, memory.environment().deviceCount());
    }

    /// Returns the memory of the graph, which a later capture can share.
    public GraphMemory memory() {
        return new GraphMemory(memory, capture.memory());
    }

    /// Ends the capture.
    ///
    /// @return the graph, which the caller destroys; its memory is kept until the graph and its executables
    ///     are gone
    /// @throws CudaException as for [Graphs#endCapture]; or if the driver refuses to notify Cistern of the
    ///     graph's end. If the stream is still being captured, for example because the wrong thread called
    ///     this method, nothing has changed. Otherwise there is no graph, and the memory goes back
    /// @throws IllegalStateException if the capture has already ended
    public long end() {
        if (ended) {
            throw new IllegalStateException("the capture has ended already");
        }
        long graph = endInDriver();
        captures.endWithNew(capture, graph);
        return graph;
    }

    /// Ends the capture in the driver. If that fails although the stream is no longer captured, this announces
    /// the end.
    private long endInDriver() {
        try {
            long graph = graphs.endCapture(capture.device(), capture.origin());
            ended = true;
            return graph;
        } catch (CudaException failure) {
            if (!isOn()) {
                ended = true;
                captures.end(capture, 0);
            }
            throw failure;
        }
    }

    private boolean isOn() {
        try {
            return graphs.captureStatus(capture.device(), capture.origin()) != CaptureStatus.NONE;
        } catch (CudaException untold) {
            return !untold.result().endsContext();
        }
    }

    /// Called when the driver has made no executable of the graph of this capture.
    void graphFailed(long graph) {
        captures.graphFailed(capture, graph);
    }

    /// Called when the program closes the graph of this capture.
    void closeGraph(Runnable destroying, boolean wasLaunched) {
        captures.graphClosed(capture, destroying, wasLaunched);
    }

    /// Ends the capture and instantiates the graph, so that it can be launched.
    ///
    /// @return the graph, which the caller closes
    /// @throws CudaException as for [#end]; or if the driver can't instantiate the graph. The graph is then
    ///     destroyed once its live blocks are freed
    /// @throws IllegalStateException if the capture has already ended
    public CudaGraph endAndInstantiate() {
        OutOfMemoryHandler outOfMemory =
                memory.moduleSupport().attached(OutOfMemoryHandler.class).orElseThrow();
        return new CudaGraph(graphs, outOfMemory, capture.device(), this);
    }

    /// Abandons the capture, unless it has [ended][#end]. No work may use the capture's live blocks after
    /// this call, but the program must still free them.
    ///
    /// @throws CudaException if the stream is still being captured, for example because the wrong thread
    ///     called this method; close the capture again on the right thread
    @Override
    public void close() {
        for (int tries = 1; !ended; tries++) {
            abandon(tries == DeadContext.MOST_TRIES);
        }
    }

    private void abandon(boolean isLastTry) {
        long graph;
        try {
            graph = endInDriver();
        } catch (CudaException | OutOfMemoryError refused) {
            if (!ended && isLastTry) {
                throw refused;
            }
            return;
        }
        try {
            captures.giveUp(capture, graph);
        } finally {
            captures.end(capture, 0);
        }
    }
}
