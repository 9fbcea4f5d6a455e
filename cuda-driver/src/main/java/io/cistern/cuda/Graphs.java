package io.cistern.cuda;

import java.util.List;
import java.util.function.BooleanSupplier;

/// Makes and launches graphs: work that is described once and launched many times, captured from streams or
/// built by hand.
///
/// **Capture.** From [#beginCapture] on, work given to the stream becomes nodes of a graph. Another stream
/// joins when it waits for an event that was recorded in the capture; the first stream must wait for it before
/// [#endCapture]. During a capture, calls that it can't see are restricted: see [CaptureMode].
///
/// **Memory of graphs.** `cuMemAllocAsync` and `cuMemFreeAsync` on a captured stream become nodes too. The
/// address of such an allocation is fixed when it is captured. Its memory exists from the time when the node runs
/// until its free: by a node of the graph, by [MemoryPools#free] outside, or by the next launch of an executable
/// that was instantiated with `freesOnLaunch`. Only one executable of such a graph exists at a time.
///
/// **Threads.** Unless its mode is [CaptureMode#RELAXED], a capture must be ended by the OS thread that began
/// it, so a virtual thread must not block in between. Only one thread at a time may change a graph.
public interface Graphs {
    /// Begins to capture a stream (`cuStreamBeginCapture_v2`).
    ///
    /// @param stream any but the legacy default stream
    /// @throws CudaException [CudaResult#ILLEGAL_STATE] or [CudaResult#INVALID_VALUE] if the stream is captured
    ///     already, [CudaResult#STREAM_CAPTURE_UNSUPPORTED] for the legacy default stream
    void beginCapture(int device, long stream, CaptureMode mode);

    /// Ends a capture (`cuStreamEndCapture`). If this fails, the capture still ends for all its streams, unless
    /// the wrong thread called.
    ///
    /// @param stream the stream on which the capture began
    /// @return the graph; the caller destroys it
    /// @throws CudaException [CudaResult#STREAM_CAPTURE_INVALIDATED] after a forbidden call,
    ///     [CudaResult#STREAM_CAPTURE_UNJOINED] if the capturing stream did not wait for a stream that joined,
    ///     [CudaResult#STREAM_CAPTURE_WRONG_THREAD] on a thread that did not begin it,
    ///     [CudaResult#STREAM_CAPTURE_UNMATCHED] on a stream that joined
    long endCapture(int device, long stream);

    /// Returns the capture state of a stream (`cuStreamIsCapturing`).
    ///
    /// @throws CudaException [CudaResult#STREAM_CAPTURE_IMPLICIT] for the legacy default stream while a stream
    ///     that waits for it is captured
    CaptureStatus captureStatus(int device, long stream);

    /// Returns the id of the capture that a stream is in, unique in this process (`cuStreamGetCaptureInfo_v3`,
    /// driver 12.3); 0 if it is in none, or in an invalidated one.
    ///
    /// @throws CudaException as [#captureStatus] does
    long captureId(int device, long stream);

    /// Returns the graph into which a stream is captured; 0 if it is not captured. The capture owns the graph
    /// until it ends.
    ///
    /// @throws CudaException as [#captureStatus] does
    long capturingGraph(int device, long stream);

    /// Returns the nodes on which a captured stream's next node will depend; empty if it is not captured.
    ///
    /// @throws CudaException as [#captureStatus] does
    List<Long> captureDependencies(int device, long stream);

    /// Sets the calling OS thread's capture mode (`cuThreadExchangeStreamCaptureMode`).
    ///
    /// @return the mode before
    CaptureMode exchangeThreadMode(CaptureMode mode);

    /// Runs a few driver calls so that captures under way on any thread neither forbid nor see them.
    ///
    /// @param body must not block except in a driver call: a virtual thread would resume on another OS thread
    default void relaxed(Runnable body) {
        CaptureMode before = exchangeThreadMode(CaptureMode.RELAXED);
        try {
            body.run();
        } finally {
            exchangeThreadMode(before);
        }
    }

    /// Protects captures on a device from all calls through this driver, until [#unshelter]; calls nest. Calls
    /// that a capture forbids are then made as [#relaxed] does, on every thread. The calls that would
    /// invalidate every capture of the context, [Devices#synchronize] and [Events#recordAll], are not made and
    /// throw [CudaResult#STREAM_CAPTURE_UNSUPPORTED].
    void shelter(int device);

    /// Takes back one [#shelter].
    void unshelter(int device);

    /// Returns whether calls are [sheltered][#shelter] from captures on a device. Makes no driver call.
    boolean isSheltered(int device);

    /// Makes a call that would invalidate captures on the device, unless calls are [sheltered][#shelter]. A
    /// shelter that begins meanwhile waits for the call, and so does the capture that follows.
    ///
    /// @param call must not wait
    /// @return the call's result, or false if it was not made
    boolean unlessSheltered(int device, BooleanSupplier call);

    /// Creates an empty graph (`cuGraphCreate`).
    long create(int device);

    /// Adds an allocation of the device's memory to a graph (`cuGraphAddMemAllocNode`, CUDA 11.4).
    ///
    /// @param dependencies the nodes that it follows
    /// @param byteSize bytes to allocate
    /// @return the node and the address
    AllocationNode addAllocation(int device, long graph, List<Long> dependencies, long byteSize);

    /// Adds the free of an allocation to a graph (`cuGraphAddMemFreeNode`).
    ///
    /// @return the node
    /// @throws CudaException [CudaResult#INVALID_VALUE] if no graph allocates the memory, or this graph frees
    ///     it already
    long addFree(int device, long graph, List<Long> dependencies, long address);

    /// Adds a fill with 32-bit words to a graph (`cuGraphAddMemsetNode`).
    ///
    /// @param count number of words
    /// @return the node
    long addFill(int device, long graph, List<Long> dependencies, long target, int value, long count);

    /// Adds a node that does nothing (`cuGraphAddEmptyNode`).
    ///
    /// @return the node
    long addEmpty(int device, long graph, List<Long> dependencies);

    /// Returns the number of a graph's nodes (`cuGraphGetNodes`).
    long nodeCount(int device, long graph);

    /// Returns the nodes that a node follows directly (`cuGraphNodeGetDependencies_v2`, driver 12.3).
    List<Long> dependencies(int device, long node);

    /// Ties code to a graph. The code runs once, on a driver thread, when the graph and all its executables are
    /// gone and their launches are done (`cuUserObjectCreate`, `cuGraphRetainUserObject`). It must not call the
    /// driver; exceptions that it throws are swallowed.
    ///
    /// @param graph a graph, which may still be under capture
    void retain(int device, long graph, Runnable whenGone);

    /// Creates an executable of a graph (`cuGraphInstantiateWithFlags`, CUDA 11.4).
    ///
    /// @param freesOnLaunch whether a launch first frees the memory that an earlier launch allocated and did
    ///     not free (`CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`)
    /// @throws CudaException [CudaResult#NOT_SUPPORTED] or [CudaResult#INVALID_VALUE] for a second executable
    ///     of a graph that allocates
    long instantiate(int device, long graph, boolean freesOnLaunch);

    /// Gives an executable the parameters of a graph of the same shape (`cuGraphExecUpdate_v2`, CUDA 12.0).
    ///
    /// @throws CudaException [CudaResult#GRAPH_EXEC_UPDATE_FAILURE] if the shapes differ; nothing is changed then
    void update(int device, long executable, long graph);

    /// Launches an executable (`cuGraphLaunch`), after the stream's work and its own earlier launches.
    ///
    /// @throws CudaException [CudaResult#INVALID_VALUE] if memory of the last launch is not freed
    void launch(int device, long executable, long stream);

    /// Destroys an executable (`cuGraphExecDestroy`); a launch under way still runs to its end.
    void destroyExecutable(int device, long executable);

    /// Destroys a graph (`cuGraphDestroy`); its executables remain.
    void destroy(int device, long graph);

    /// Returns a counter of the memory of the device's graphs (`cuDeviceGetGraphMemAttribute`), in bytes.
    long memory(int device, GraphMemoryAttribute attribute);

    /// Resets a high-water mark (`cuDeviceSetGraphMemAttribute`).
    ///
    /// @throws CudaException [CudaResult#INVALID_VALUE] for a current value
    void resetMemory(int device, GraphMemoryAttribute attribute);

    /// Gives memory that no graph uses now back to the device (`cuDeviceGraphMemTrim`).
    void trimMemory(int device);

    /// An allocation in a graph.
    ///
    /// @param node its node
    /// @param address the address that its memory will have
    record AllocationNode(long node, long address) {}
}
