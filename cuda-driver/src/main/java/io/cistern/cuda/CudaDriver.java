package io.cistern.cuda;

/// Gives access to the CUDA driver in facets, one for each group of functions in the driver API's reference.
///
/// Two implementations exist: the real driver, bound to `libcuda.so.1`, and the simulated GPU. Both pass the
/// same driver-contract tests, so code that uses this interface runs on either. [#simulated()] tells them
/// apart.
///
/// **Handles and addresses** are plain `long`s, as in C. The stream handles 0 and 1 mean the legacy default
/// stream, and 2 means the per-thread default stream.
///
/// **Context rule.** A call names its device, as an argument or inside one (for example
/// [PhysicalMemory#device()]). The implementation retains that device's primary context on first use, and makes
/// it current on the calling OS thread before the call. If another context was current, the implementation
/// restores it after the call. Virtual threads may call.
///
/// **Errors.** If a driver function returns an error, the method throws a [CudaException] that names the
/// function, the `CUresult` and the arguments. `CUDA_ERROR_NOT_READY` is not an error for [Streams#isIdle] and
/// [Events#hasPassed]: they return false.
///
/// **Threads.** Every method of every facet may be called by any thread at any time.
public interface CudaDriver extends AutoCloseable {
    /// Returns whether this is a simulated GPU.
    boolean simulated();

    /// Returns a human-readable description of the implementation, for example `libcuda.so.1, driver API 13.0`.
    String description();

    /// Returns the version that `cuDriverGetVersion` reports: 1000 × major + 10 × minor.
    int version();

    /// Returns the capabilities of this driver and of each of its devices, with a reason for each missing
    /// one. The driver is probed only once.
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

    /// Returns the facet for plain device memory (`cuMemAlloc`), pinned host memory and pointer attributes.
    default LinearMemory memory() {
        return facets().memory();
    }

    /// Returns the facet for managed memory, which has the same address on the host and on all devices.
    default UnifiedMemory unifiedMemory() {
        return facets().unifiedMemory();
    }

    /// Returns the facet for stream-ordered allocation and its pools.
    default MemoryPools pools() {
        return facets().pools();
    }

    /// Returns the facet for virtual memory management: address ranges, physical memory, mappings and access
    /// rights.
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

    /// Returns the facet for graphs and stream capture.
    default Graphs graphs() {
        return facets().graphs();
    }

    /// Returns the facet that loads kernels from PTX text and launches them.
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

    /// Returns the driver beneath all wrappers, such as the race checker, or this object if it is not a
    /// wrapper.
    default CudaDriver original() {
        return this;
    }

    /// Returns how often each driver function was called through this object.
    CallCounts calls();

    /// Returns the current time on the clock of this driver, in nanoseconds from an arbitrary origin. On a real
    /// GPU that is [System#nanoTime]; on a simulated GPU it is virtual time. Cheap; makes no driver call.
    default long nanoTime() {
        return System.nanoTime();
    }

    /// Releases the retained primary contexts. No other call may be under way. Later calls fail with
    /// [CudaResult#DEINITIALIZED]. Closing twice does nothing.
    @Override
    void close();
}
