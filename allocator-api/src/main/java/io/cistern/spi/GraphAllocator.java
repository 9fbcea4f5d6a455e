package io.cistern.spi;

/// A private allocator for streams that are captured into graphs: see [AllocatorProvider#openForGraphs].
///
/// Each launch of a graph uses the memory that was allocated in its capture, even if it was freed there. So
/// until [#graphsGone] the allocator gives no memory back, not even for [#trim], and maps no other memory at
/// its addresses.
///
/// It may hand a freed block to the stream of the free at once, since the graph orders the two uses. It may
/// hand the block to another stream of the capture when a fence on the first one, from
/// [AllocatorContext#streams], has passed. The fence passes as soon as the graph orders the two streams, or the
/// capture is over.
///
/// **Threads.** As [DeviceAllocator].
public interface GraphAllocator extends DeviceAllocator {
    /// Called when no graph uses the memory any more: all launches have ended. Free memory may go back, and
    /// live blocks are freed like others. Streams may be captured into other graphs meanwhile. If the
    /// driver refuses a call for that reason, this may throw its [io.cistern.cuda.CudaException], and is
    /// called again after the captures. [#close] follows after the last of those blocks.
    void graphsGone();
}
