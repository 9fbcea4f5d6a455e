/// Device memory for programs.
///
/// **Start here.** [Allocators] allocates and frees with static methods, on the process's own
/// [DeviceMemory]. Methods take a stream as a `CUstream` handle; [CudaStream#handle] returns it. The
/// artifact `cistern-device-buffers` (package `io.cistern.buffers`) has memory as objects, such as
/// `DeviceBuffer` and arenas, and copies and kernels for them.
///
/// ```java
/// try (CudaStream stream = CudaStream.open();                          // a stream of device 0
///         DeviceBuffer x = DeviceBuffer.allocate(1L << 20, stream)) {  // from the current allocator
///     launch(x.address(), stream.handle());
/// }
/// Allocators.setCurrent("async");                                      // later memory comes from another one
/// try (MemoryPool pool = MemoryPool.of("vmm"); Scope scope = pool.enter()) {
///     work();                                                          // this thread allocates from the pool
/// }
/// ```
///
/// | to | take |
/// |---|---|
/// | allocate, free, open allocators | [Allocators], [DeviceMemory], [OpenOptions], [Allocator] |
/// | choose or replace the current allocator | [Currents] |
/// | use memory of a private pool | [MemoryPool], [Pools] |
/// | send a region of code to an allocator or pool | [Scope], [ScopeOptions], [ScopeCarrier] |
/// | limit memory | [MemoryLimit] |
/// | read what is in use | [AllocatorStatistics], [DeviceMemory#memorySummary], [DeviceMemory#leaks] |
/// | be notified of thresholds, memory pressure, ends of streams | [Listeners], [MemoryMeasure], [Registration] |
/// | make streams and events | [CudaStream], [CudaStreamPool], [CudaEvent] |
/// | build a module on device memory | [ModuleSupport] |
package io.cistern;
