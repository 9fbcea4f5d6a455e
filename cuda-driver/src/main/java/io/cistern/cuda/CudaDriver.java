package io.cistern.cuda;

/// The CUDA driver, in facets that follow the chapters of the driver API's reference.
///
/// Two implementations exist: the real driver, bound to `libcuda.so.1`, and the simulated GPU. Both pass the same
/// driver-contract tests, so code above this interface cannot tell them apart except by [#simulated()].
///
/// **Handles and addresses** are plain `long`s, as in C; stream handle 0 and 1 mean the legacy default stream, 2
/// the per-thread one.
///
/// **Context rule.** Every call names its device (or an object that knows it); the implementation retains that
/// device's primary context on first use and makes it current on the calling OS thread before the call. A foreign
/// context that the caller had current is restored afterwards. Virtual threads may call.
///
/// **Errors.** Each result other than success becomes a [CudaException] that carries the call, the `CUresult`
/// with its name, and the arguments. "Not ready" of the query calls is an answer, not an error.
///
/// **Threads.** Every method of every facet may be called by any thread at any time.
public interface CudaDriver extends AutoCloseable {
    /// Tells a simulated GPU from a real one.
    boolean simulated();

    /// Names the implementation for people, for example `libcuda.so.1, driver API 13.0`.
    String description();

    /// The version that `cuDriverGetVersion` reports: 1000 × major + 10 × minor.
    int version();

    /// What this driver and each of its devices can do, probed once, with a reason for each "no".
    DriverCapabilities capabilities();

    /// Devices, their attributes and their primary contexts.
    Devices devices();

    /// `cuMemAlloc` and its relatives: device memory in plain ranges, pinned host memory, pointer attributes.
    LinearMemory memory();

    /// Managed memory: one address for host and devices, moved page by page.
    UnifiedMemory unifiedMemory();

    /// Stream-ordered allocation and the pools behind it.
    MemoryPools pools();

    /// Address ranges, physical memory, mappings and access rights.
    VirtualMemory virtualMemory();

    /// Copies and fills in stream order.
    Copies copies();

    /// Streams and host functions.
    Streams streams();

    /// Events.
    Events events();

    /// Graphs, and capture into them.
    Graphs graphs();

    /// Kernels: modules from PTX text, functions, launches.
    Modules modules();

    /// Access between devices.
    Peers peers();

    /// Memory and events for other processes.
    Sharing sharing();

    /// How often each driver function was called through this object.
    CallCounts calls();

    /// The time on which this driver's calls and device work take place, in nanoseconds from any beginning: that
    /// of [System#nanoTime], or a simulated GPU's own. Takes tens of nanoseconds; nothing is asked of the driver.
    default long nanoTime() {
        return System.nanoTime();
    }

    /// Releases the primary contexts that were retained. Later calls fail with [CudaResult#DEINITIALIZED].
    /// Closing twice does nothing.
    @Override
    void close();
}
