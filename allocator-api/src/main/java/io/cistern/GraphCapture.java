package io.cistern;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Graphs;

/// A capture of a stream into a CUDA graph, announced to all allocators. What the stream, and those that join it,
/// allocate meanwhile comes from [GraphMemory] that lives as long as the graph.
///
/// ```java
/// try (GraphCapture capture = memory.capture(device, stream, CaptureMode.GLOBAL)) {
///     long scratch = memory.allocate(bytes, device, stream);
///     launch(scratch, stream);
///     memory.free(scratch, stream);
///     graph = capture.end();
/// }
/// ```
///
/// Other threads allocate freely meanwhile, with all that an allocator does when memory runs out but for waiting for
/// streams that are captured. On the captured streams a block that was freed is handed out again once the graph
/// orders the two uses. Sending a region to a pool is something else: a [Scope] captures nothing, and a pool's
/// blocks serve a capture inside the scope like any allocator's.
///
/// **Threads.** By one thread at a time; in other modes than [CaptureMode#RELAXED] by the OS thread that began, so a
/// virtual thread must not block in between.
public final class GraphCapture implements AutoCloseable {
    private final Captures captures;
    private final Graphs graphs;
    private final StreamCapture capture;
    private boolean ended;

    private GraphCapture(Captures captures, Graphs graphs, StreamCapture capture) {
        this.captures = captures;
        this.graphs = graphs;
        this.capture = capture;
    }

    static GraphCapture begin(Captures captures, int device, long stream, CaptureMode mode, GraphMemory memory) {
        Graphs graphs = captures.memory().driver().graphs();
        StreamCapture capture = captures.begin(device, stream, memory);
        try {
            graphs.beginCapture(device, stream, mode);
        } catch (Throwable failure) {
            captures.end(capture, 0);
            throw failure;
        }
        return new GraphCapture(captures, graphs, capture);
    }

    /// The memory of the graph, to be shared with a later capture.
    public GraphMemory memory() {
        return capture.memory;
    }

    /// Ends the capture.
    ///
    /// @return the graph, the caller's to destroy; its memory is kept until it and its executables are gone
    /// @throws CudaException as [Graphs#endCapture], or if the driver won't tell of the graph's end; then there
    ///     is no graph, and the memory goes back
    /// @throws IllegalStateException if it has ended
    public long end() {
        if (ended) {
            throw new IllegalStateException("the capture has ended already");
        }
        long graph;
        try {
            graph = graphs.endCapture(capture.device, capture.origin);
        } catch (CudaException failure) {
            if (graphs.captureStatus(capture.device, capture.origin) == io.cistern.cuda.CaptureStatus.NONE) {
                ended = true;
                captures.end(capture, 0);
            }
            throw failure;
        }
        ended = true;
        captures.endWithNew(capture, graph);
        return graph;
    }

    /// Gives the capture up, unless it has [ended][#end]: nothing is left of it but blocks that are
    /// alive, which no work may use and which are to be freed.
    @Override
    public void close() {
        if (!ended) {
            abandon();
        }
    }

    private void abandon() {
        ended = true;
        try {
            capture.memory.giveUp(capture.device, graphs.endCapture(capture.device, capture.origin));
        } catch (CudaException invalidated) {
            // There is no graph then.
        } finally {
            captures.end(capture, 0);
        }
    }
}
