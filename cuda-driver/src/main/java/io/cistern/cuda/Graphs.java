package io.cistern.cuda;

import java.util.List;
import java.util.function.BooleanSupplier;

/// Creates and launches graphs. A graph is work that is described once, either by capturing streams or node by
/// node, and launched many times.
///
/// **Capture.** After [#beginCapture], work submitted to the stream becomes nodes of a graph. Another
/// stream joins the capture when it waits for an event that was recorded in the capture. Before
/// [#endCapture], the stream on which the capture began must wait for each stream that joined. During a
/// capture, calls that can't become nodes are restricted: see [CaptureMode].
///
/// **Memory of graphs.** `cuMemAllocAsync` and `cuMemFreeAsync` on a captured stream become nodes too. The
/// address of such an allocation is fixed when it is captured. Its memory exists from the time the node
/// runs until it is freed: by another node of the graph, by [MemoryPools#free] outside the graph, or by the
/// next launch of an executable instantiated with `freesOnLaunch`. A graph that allocates or frees memory
/// can have only one executable at a time.
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
    /// @throws CudaException [CudaResult#STREAM_CAPTURE_IMPLICIT] for the legacy default stream while a
    ///     [blocking][Streams#isBlocking] stream is captured
    CaptureStatus captureStatus(int device, long stream);

    /// Returns the id of the capture that a stream is in, unique in this process
    /// (`cuStreamGetCaptureInfo_v3`, driver 12.3); 0 if it is not captured or the capture is invalidated.
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
    /// @return the previous mode
    CaptureMode exchangeThreadMode(CaptureMode mode);

    /// Runs code with the calling thread's mode set to [CaptureMode#RELAXED], so that captures under way on any
    /// thread do not forbid its driver calls.
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

    /// Protects captures on a device from all calls through this driver, until [#unshelter]. Such pairs may
    /// be nested. Until then, calls on every thread are made in the mode [CaptureMode#RELAXED], so that
    /// captures do not forbid them. [Devices#synchronize] and [Events#recordAll] would invalidate the
    /// captures even in that mode; they throw [CudaResult#STREAM_CAPTURE_UNSUPPORTED] without calling the
    /// driver.
    void shelter(int device);

    /// Ends the protection that one call of [#shelter] began.
    void unshelter(int device);

    /// Returns whether calls are [sheltered][#shelter] from captures on a device. Makes no driver call.
    boolean isSheltered(int device);

    /// Makes a call that would invalidate captures on the device, unless calls are [sheltered][#shelter]. A
    /// concurrent [#shelter] waits until the call has returned.
    ///
    /// @param call must not block
    /// @return the call's result, or false if it was not made
    boolean unlessSheltered(int device, BooleanSupplier call);

    /// Creates an empty graph (`cuGraphCreate`).
    long create(int device);

    /// Adds an allocation of the device's memory to a graph (`cuGraphAddMemAllocNode`, CUDA 11.4).
    ///
    /// @param dependencies the nodes that must complete before it
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

    /// Returns the nodes on which a node depends directly (`cuGraphNodeGetDependencies_v2`, driver 12.3).
    List<Long> dependencies(int device, long node);

    /// Registers code that runs once, on a driver thread, after the graph and all its executables have been
    /// destroyed and their launches have completed (`cuUserObjectCreate`, `cuGraphRetainUserObject`). The
    /// code must not call the driver; exceptions that it throws are swallowed.
    ///
    /// @param graph a graph, which may still be under capture
    void retain(int device, long graph, Runnable whenGone);

    /// Creates an executable of a graph (`cuGraphInstantiateWithFlags`, CUDA 11.4).
    ///
    /// @param freesOnLaunch whether a launch first frees the memory that an earlier launch allocated and did
    ///     not free (`CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`)
    /// @throws CudaException [CudaResult#NOT_SUPPORTED] or [CudaResult#INVALID_VALUE] for a second executable
    ///     of a graph that allocates or frees memory
    long instantiate(int device, long graph, boolean freesOnLaunch);

    /// Gives an executable the parameters of a graph of the same shape (`cuGraphExecUpdate_v2`, CUDA 12.0).
    ///
    /// @throws CudaException [CudaResult#GRAPH_EXEC_UPDATE_FAILURE] if the shapes differ; the executable is
    ///     then unchanged
    void update(int device, long executable, long graph);

    /// Launches an executable (`cuGraphLaunch`). It runs after the stream's earlier work and after the
    /// executable's earlier launches.
    ///
    /// @throws CudaException [CudaResult#INVALID_VALUE] if memory that the last launch allocated is not freed
    ///     yet, and the executable was not instantiated with `freesOnLaunch`
    void launch(int device, long executable, long stream);

    /// Destroys an executable (`cuGraphExecDestroy`); a launch under way still completes.
    void destroyExecutable(int device, long executable);

    /// Destroys a graph (`cuGraphDestroy`); its executables remain.
    void destroy(int device, long graph);

    /// Returns a counter of the memory of the device's graphs (`cuDeviceGetGraphMemAttribute`), in bytes.
    long memory(int device, GraphMemoryAttribute attribute);

    /// Resets a high-water mark (`cuDeviceSetGraphMemAttribute`).
    ///
    /// @throws CudaException [CudaResult#INVALID_VALUE] for a current value
    void resetMemory(int device, GraphMemoryAttribute attribute);

    /// Releases to the device the memory that the driver keeps for graphs but no graph uses
    /// (`cuDeviceGraphMemTrim`).
    void trimMemory(int device);

    /// An allocation in a graph.
    ///
    /// @param node its node
    /// @param address the address that its memory will have
    record AllocationNode(long node, long address) {}
}
