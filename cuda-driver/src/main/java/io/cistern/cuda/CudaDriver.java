package io.cistern.cuda;

/// Gives access to the CUDA driver in facets, one for each group of functions in the driver API's reference.
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

    /// The facets of a driver, as an implementation provides them.
    ///
    /// @param devices see [CudaDriver#devices()]
    /// @param memory see [CudaDriver#memory()]
    /// @param unifiedMemory see [CudaDriver#unifiedMemory()]
    /// @param pools see [CudaDriver#pools()]
    /// @param virtualMemory see [CudaDriver#virtualMemory()]
    /// @param copies see [CudaDriver#copies()]
    /// @param streams see [CudaDriver#streams()]
    /// @param events see [CudaDriver#events()]
    /// @param graphs see [CudaDriver#graphs()]
    /// @param modules see [CudaDriver#modules()]
    /// @param peers see [CudaDriver#peers()]
    /// @param sharing see [CudaDriver#sharing()]
    record Facets(
            Devices devices,
            LinearMemory memory,
            UnifiedMemory unifiedMemory,
            MemoryPools pools,
            VirtualMemory virtualMemory,
            Copies copies,
            Streams streams,
            Events events,
            Graphs graphs,
            Modules modules,
            Peers peers,
            Sharing sharing) {}

    /// Returns all facets.
    Facets facets();

    /// Returns the facet for devices, their attributes and their primary contexts.
    default Devices devices() {
        return facets().devices();
    }

    /// Returns the facet for `cuMemAlloc` and its relatives: plain device memory, pinned host memory, pointer
    /// attributes.
    default LinearMemory memory() {
        return facets().memory();
    }

    /// Returns the facet for managed memory: one address for host and devices, moved page by page.
    default UnifiedMemory unifiedMemory() {
        return facets().unifiedMemory();
    }

    /// Returns the facet for stream-ordered allocation and its pools.
    default MemoryPools pools() {
        return facets().pools();
    }

    /// Returns the facet for address ranges, physical memory, mappings and access rights.
    default VirtualMemory virtualMemory() {
        return facets().virtualMemory();
    }

    /// Returns the facet for copies and fills in stream order.
    default Copies copies() {
        return facets().copies();
    }

    /// Returns the facet for streams and host functions.
    default Streams streams() {
        return facets().streams();
    }

    /// Returns the facet for events.
    default Events events() {
        return facets().events();
    }

    /// Returns the facet for graphs and for capture into them.
    default Graphs graphs() {
        return facets().graphs();
    }

    /// Returns the facet for kernels: modules from PTX text, functions, launches.
    default Modules modules() {
        return facets().modules();
    }

    /// Returns the facet for access between devices.
    default Peers peers() {
        return facets().peers();
    }

    /// Returns the facet that shares memory and events with other processes.
    default Sharing sharing() {
        return facets().sharing();
    }

    /// Returns the driver that observers have wrapped: this object if there are none.
    default CudaDriver original() {
        return this;
    }

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
