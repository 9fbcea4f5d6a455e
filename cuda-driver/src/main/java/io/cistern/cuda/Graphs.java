package io.cistern.cuda;

import java.util.List;
import java.util.function.BooleanSupplier;

/// Graphs: work that is put down once and launched many times, captured from streams or built by hand.
///
/// **Capture.** From [#beginCapture] on, what a stream is given becomes a node of a graph. Another stream joins
/// by waiting for an event that was recorded in the capture, and must be waited for in turn before [#endCapture].
/// While a capture is on, calls that it can't see are restricted: see [CaptureMode].
///
/// **Memory of graphs.** `cuMemAllocAsync` and `cuMemFreeAsync` on a stream in capture become nodes too. The
/// address of such an allocation is fixed from the capture on, its memory is there from the node's run until its
/// free: by a node of the graph, by [MemoryPools#free] outside, or by the next launch of an executable that was
/// instantiated with `freesOnLaunch`. Only one executable of such a graph exists at a time.
///
/// **Threads.** A capture that is not [CaptureMode#RELAXED] is ended by the OS thread that began it, so a virtual
/// thread must not block in between. A graph is changed by one thread at a time.
public interface Graphs {
    /// Begins to capture a stream (`cuStreamBeginCapture_v2`).
    ///
    /// @param stream not the legacy default stream
    /// @throws CudaException [CudaResult#ILLEGAL_STATE] or [CudaResult#INVALID_VALUE] if it is captured already,
    ///     [CudaResult#STREAM_CAPTURE_UNSUPPORTED] for the legacy default stream
    void beginCapture(int device, long stream, CaptureMode mode);

    /// Ends a capture (`cuStreamEndCapture`). If it fails, all streams of the capture are free all the same,
    /// but for a call by the wrong thread.
    ///
    /// @param stream where the capture began
    /// @return the graph, the caller's to destroy
    /// @throws CudaException [CudaResult#STREAM_CAPTURE_INVALIDATED] after something forbidden,
    ///     [CudaResult#STREAM_CAPTURE_UNJOINED] if a stream that joined was not waited for,
    ///         [CudaResult#STREAM_CAPTURE_WRONG_THREAD], [CudaResult#STREAM_CAPTURE_UNMATCHED] on a stream that
    ///     joined
    long endCapture(int device, long stream);

    /// Whether a stream is in a capture (`cuStreamIsCapturing`).
    ///
    /// @throws CudaException [CudaResult#STREAM_CAPTURE_IMPLICIT] for the legacy default stream while a stream
    ///     that waits for it is captured
    CaptureStatus captureStatus(int device, long stream);

    /// The capture that a stream is in, by a number that no other capture of this process has
    /// (`cuStreamGetCaptureInfo_v3`, driver 12.3); 0 if it is in none, or in one that is invalidated.
    ///
    /// @throws CudaException as [#captureStatus]
    long captureId(int device, long stream);

    /// The graph that a stream is captured into; 0 if it is not captured. Belongs to the capture until that ends.
    ///
    /// @throws CudaException as [#captureStatus]
    long capturingGraph(int device, long stream);

    /// The nodes that a captured stream's next node will depend on; empty if it is not captured.
    ///
    /// @throws CudaException as [#captureStatus]
    List<Long> captureDependencies(int device, long stream);

    /// Sets how the calling OS thread gets on with captures (`cuThreadExchangeStreamCaptureMode`).
    ///
    /// @return what was set before
    CaptureMode exchangeThreadMode(CaptureMode mode);

    /// Makes a driver call, or a few, that captures under way on any thread neither forbid nor see.
    ///
    /// @param body must not block but in a driver call: a virtual thread would go on as another OS thread
    default void relaxed(Runnable body) {
        CaptureMode before = exchangeThreadMode(CaptureMode.RELAXED);
        try {
            body.run();
        } finally {
            exchangeThreadMode(before);
        }
    }

    /// Lets all calls through this driver get on with captures on a device, until [#unshelter]; counted. Calls
    /// that a capture forbids are made as [#relaxed] would, on every thread. Those that would invalidate each
    /// capture of the context, [Devices#synchronize] and [Events#recordAll], are refused with
    /// [CudaResult#STREAM_CAPTURE_UNSUPPORTED] and not made.
    void shelter(int device);

    /// Takes back one [#shelter].
    void unshelter(int device);

    /// Whether calls are [sheltered][#shelter] from captures on a device. Asks no driver.
    boolean isSheltered(int device);

    /// Makes a call that a capture on the device would be invalidated by, unless calls are [sheltered][#shelter];
    /// a shelter that comes meanwhile waits for it, and so does the capture that follows.
    ///
    /// @param call must not wait
    /// @return what the call says, or false if it was not made
    boolean unlessSheltered(int device, BooleanSupplier call);

    /// Makes an empty graph (`cuGraphCreate`).
    long create(int device);

    /// Adds an allocation of the device's memory to a graph (`cuGraphAddMemAllocNode`, CUDA 11.4).
    ///
    /// @param dependencies the nodes that it follows
    AllocationNode addAllocation(int device, long graph, List<Long> dependencies, long byteSize);

    /// Adds the free of an allocation to a graph (`cuGraphAddMemFreeNode`).
    ///
    /// @return the node
    /// @throws CudaException [CudaResult#INVALID_VALUE] for memory that no graph allocates, or freed in this one
    ///     already
    long addFree(int device, long graph, List<Long> dependencies, long address);

    /// Adds a fill by 32-bit words to a graph (`cuGraphAddMemsetNode`).
    ///
    /// @param count number of words
    /// @return the node
    long addFill(int device, long graph, List<Long> dependencies, long target, int value, long count);

    /// Adds a node that does nothing (`cuGraphAddEmptyNode`).
    ///
    /// @return the node
    long addEmpty(int device, long graph, List<Long> dependencies);

    /// Number of a graph's nodes (`cuGraphGetNodes`).
    long nodeCount(int device, long graph);

    /// The nodes that a node follows directly (`cuGraphNodeGetDependencies_v2`, driver 12.3).
    List<Long> dependencies(int device, long node);

    /// Ties code to a graph: it runs once, on a thread of the driver, when the graph and all its executables are
    /// gone and their launches done (`cuUserObjectCreate`, `cuGraphRetainUserObject`). The code must not call the
    /// driver; what it throws is swallowed.
    ///
    /// @param graph may be under capture
    void retain(int device, long graph, Runnable whenGone);

    /// Makes an executable of a graph (`cuGraphInstantiateWithFlags`, CUDA 11.4).
    ///
    /// @param freesOnLaunch whether a launch first frees what the graph allocated in an earlier one and did not
    ///     free (`CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`)
    /// @throws CudaException [CudaResult#NOT_SUPPORTED] or [CudaResult#INVALID_VALUE] for a second executable of
    ///     a graph that allocates
    long instantiate(int device, long graph, boolean freesOnLaunch);

    /// Gives an executable the parameters of a graph of the same shape (`cuGraphExecUpdate_v2`, CUDA 12.0).
    ///
    /// @throws CudaException [CudaResult#GRAPH_EXEC_UPDATE_FAILURE] if the shapes differ; nothing is changed then
    void update(int device, long executable, long graph);

    /// Launches an executable (`cuGraphLaunch`), behind the stream's work and its own earlier launches.
    ///
    /// @throws CudaException [CudaResult#INVALID_VALUE] if memory of the last launch is not freed
    void launch(int device, long executable, long stream);

    /// Destroys an executable (`cuGraphExecDestroy`); a launch under way still runs to its end.
    void destroyExecutable(int device, long executable);

    /// Destroys a graph (`cuGraphDestroy`); executables made of it stay.
    void destroy(int device, long graph);

    /// Tells of the memory of the device's graphs (`cuDeviceGetGraphMemAttribute`).
    long memory(int device, GraphMemoryAttribute attribute);

    /// Lets a high-water mark begin anew (`cuDeviceSetGraphMemAttribute`).
    ///
    /// @throws CudaException [CudaResult#INVALID_VALUE] for a current value
    void resetMemory(int device, GraphMemoryAttribute attribute);

    /// Gives memory that no graph uses now back to the device (`cuDeviceGraphMemTrim`).
    void trimMemory(int device);

    /// An allocation in a graph.
    ///
    /// @param node its node
    /// @param address where its memory will be
    record AllocationNode(long node, long address) {}
}
