/// Device memory for programs.
///
/// **Start here.** The static methods of [Allocators] allocate and free memory of the process's own
/// [DeviceMemory]. They take a stream as a `CUstream` handle, which [CudaStream#handle] returns. The
/// artifact `cistern-device-buffers` (package `io.cistern.buffers`) has objects for device memory, such as
/// `DeviceBuffer` and arenas, copies between them, and kernel launches.
///
/// ```java
/// try (CudaStream stream = CudaStream.open();                          // a stream of device 0
///         DeviceBuffer x = DeviceBuffer.allocate(1L << 20, stream)) {  // from the current allocator
///     launch(x.address(), stream.handle());
/// }
/// Allocators.setCurrent("async");                                      // later allocations use this one
/// try (MemoryPool pool = MemoryPool.of("vmm"); Scope scope = pool.enter()) {
///     work();                                                          // this thread allocates from the pool
/// }
/// ```
///
/// | to | use |
/// |---|---|
/// | allocate, free, open allocators | [Allocators], [DeviceMemory], [OpenOptions], [Allocator] |
/// | choose or replace the current allocator | [Currents] |
/// | open and use a private pool | [MemoryPool], [Pools] |
/// | choose the allocator or pool of a region of code | [Scope], [ScopeOptions], [ScopeCarrier] |
/// | limit memory | [MemoryLimit] |
/// | read what is in use | [AllocatorStatistics], [DeviceMemory#memorySummary], [DeviceMemory#liveBlocks] |
/// | be notified of thresholds, memory pressure, the ends of streams | [Listeners], [MemoryMeasure], [Registration] |
/// | create streams and events | [CudaStream], [CudaStreamPool], [CudaEvent] |
/// | build a module on device memory | [ModuleSupport] |
package io.cistern;
