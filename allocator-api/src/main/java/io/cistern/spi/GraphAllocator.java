package io.cistern.spi;

/// What streams allocate from and free to while they are captured into graphs: see
/// [AllocatorProvider#openForGraphs].
///
/// A graph's launches use what was allocated in its capture, wherever it was freed: so until [#graphsGone] the
/// allocator neither gives memory back, whatever [#trim] is asked, nor maps other memory at its addresses. It may
/// hand a block that was freed to the stream of the free at once, since its order is that of the graph; to another
/// stream of the capture only when a fence on the former, from [AllocatorContext#streams], has passed: which it has
/// as soon as the graph orders the two, or the capture is over.
///
/// **Threads.** As [DeviceAllocator].
public interface GraphAllocator extends DeviceAllocator {
    /// No graph uses the memory any more, and none will: what is free may go back, and blocks that are alive are
    /// freed like others. No stream is captured now. [#close] follows, after the last of those blocks.
    void graphsGone();
}
