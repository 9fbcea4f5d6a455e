package io.cistern.cuda;

/// Gives access to the CUDA driver in facets, which follow the chapters of the driver API's reference.
///
/// Two implementations exist: the real driver, bound to `libcuda.so.1`, and the simulated GPU. Both pass the same
/// driver-contract tests, so code above this interface cannot tell them apart except by [#simulated()].
///
/// **Handles and addresses** are plain `long`s, as in C. Stream handles 0 and 1 mean the legacy default stream,
/// 2 the per-thread default stream.
///
/// **Context rule.** Every call names its device, or an object that knows it. The implementation retains that
/// device's primary context on first use, and makes it current on the calling OS thread before the call. If the
/// caller had a foreign context current, the implementation restores it afterwards. Virtual threads may call.
///
/// **Errors.** Each result other than success becomes a [CudaException] that carries the call, the `CUresult`
/// with its name, and the arguments. "Not ready" of the query calls is an answer, not an error.
///
/// **Threads.** Every method of every facet may be called by any thread at any time.
public interface CudaDriver extends AutoCloseable {
    /// Returns whether this is a simulated GPU.
    boolean simulated();

    /// Returns a description of the implementation for people, for example `libcuda.so.1, driver API 13.0`.
    String description();

    /// Returns the version that `cuDriverGetVersion` reports: 1000 × major + 10 × minor.
    int version();

    /// Returns what this driver and each of its devices can do, probed once, with a reason for each "no".
    DriverCapabilities capabilities();

    /// Returns the facet for devices, their attributes and their primary contexts.
    Devices devices();

    /// Returns the facet for `cuMemAlloc` and its relatives: plain device memory, pinned host memory, pointer
    /// attributes.
    LinearMemory memory();

    /// Returns the facet for managed memory: one address for host and devices, moved page by page.
    UnifiedMemory unifiedMemory();

    /// Returns the facet for stream-ordered allocation and its pools.
    MemoryPools pools();

    /// Returns the facet for address ranges, physical memory, mappings and access rights.
    VirtualMemory virtualMemory();

    /// Returns the facet for copies and fills in stream order.
    Copies copies();

    /// Returns the facet for streams and host functions.
    Streams streams();

    /// Returns the facet for events.
    Events events();

    /// Returns the facet for graphs and for capture into them.
    Graphs graphs();

    /// Returns the facet for kernels: modules from PTX text, functions, launches.
    Modules modules();

    /// Returns the facet for access between devices.
    Peers peers();

    /// Returns the facet that shares memory and events with other processes.
    Sharing sharing();

    /// Returns how often each driver function was called through this object.
    CallCounts calls();

    /// Returns the current time of this driver's calls and device work, in nanoseconds from an arbitrary
    /// origin: the time of [System#nanoTime], or a simulated GPU's own time. Cheap; makes no driver call.
    default long nanoTime() {
        return System.nanoTime();
    }

    /// Releases the retained primary contexts. Later calls fail with [CudaResult#DEINITIALIZED]. Closing twice
    /// does nothing.
    @Override
    void close();
}
