package io.cistern.spi;

/// A private allocator for streams that are captured into graphs: see [AllocatorProvider#openForGraphs].
///
/// Each launch of a graph uses the memory that was allocated in its capture, even memory that was freed in
/// the capture. So until [#graphsGone] the allocator gives no memory back, not even for [#trim], and maps
/// no other memory at its addresses.
///
/// The allocator may immediately hand out a freed block for the stream of the free, because the graph
/// orders the two uses. It may hand out the block for another stream of the capture once a fence on the
/// stream of the free, from [AllocatorContext#streams], has passed. The fence passes as soon as the graph
/// orders the two streams, or the capture is over.
///
/// **Threads.** As for [DeviceAllocator].
public interface GraphAllocator extends DeviceAllocator {
    /// Called when no graph uses the memory any more: all launches have ended. From now on, free memory may
    /// go back to the driver, and blocks that are still live are freed as usual. [#close] follows once the
    /// last of them has been freed.
    ///
    /// Streams may be captured into other graphs during this call. If the driver refuses a call for that
    /// reason, this method may throw the driver's [io.cistern.cuda.CudaException]. The framework then calls
    /// this method again after the captures.
    void graphsGone();
}
