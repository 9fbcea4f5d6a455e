package io.cistern.diagnostics;

/// An event in one [io.cistern.DeviceMemory], such as an allocation, a trim, or the end of a stream. The
/// observers that [io.cistern.Listeners#onEvent] registers are notified of it.
///
/// **A block's life.** [Allocated] → [Freed]. After that, its memory may be handed out again in stream
/// order. If [FreeDeferred] follows, another stream or a graph may still use the memory, which is then
/// handed out only after [FreeCompleted].
///
/// **Sources.** Events about segments, pages and deferred frees exist only for allocators that report them
/// ([io.cistern.spi.EventSink]), as `caching` does. All other events exist for every allocator.
///
/// **Order.** Observers receive the events of one thread in order, except that those about segments, pages
/// and deferred frees arrive only when the thread has left the allocator. Events of different threads may
/// arrive concurrently.
public sealed interface MemoryEvent {
    /// Returns the device; -1 if the event concerns no device or several.
    default int device() {
        return -1;
    }

    /// The program allocated a block.
    ///
    /// @param allocator the spec of the allocator, or the name of the pool, that made the block
    /// @param device the device
    /// @param stream the stream that the block was allocated for
    /// @param address the address of the block
    /// @param byteSize the requested bytes
    /// @param nanos how long the allocation took, in nanoseconds
    /// @param endNanos the [System#nanoTime] of this event: after the allocation, and after observers
    ///     received the thread's earlier events
    record Allocated(String allocator, int device, long stream, long address, long byteSize, long nanos, long endNanos)
            implements MemoryEvent {}

    /// The program is freeing a block. The event comes before the free, and so before the address can be
    /// handed out again.
    ///
    /// @param allocator the spec of the allocator, or the name of the pool, that made the block
    /// @param device the device
    /// @param stream the stream of the block's last use
    /// @param address the address of the block
    /// @param byteSize the requested bytes
    record Freed(String allocator, int device, long stream, long address, long byteSize) implements MemoryEvent {}

    /// The program recorded that a block is used on another stream, too
    /// ([io.cistern.DeviceMemory#recordUse]).
    ///
    /// @param device the device
    /// @param stream the stream that also uses the block until it is freed
    /// @param address the address of the block
    record UseRecorded(int device, long stream, long address) implements MemoryEvent {}

    /// A freed block can't be handed out yet, because another stream or a graph may still use it.
    ///
    /// @param allocator the spec of the allocator, or the name of the pool, that has the block
    /// @param device the device
    /// @param address the address of the block
    /// @param byteSize bytes of the waiting memory, at least the bytes requested
    record FreeDeferred(String allocator, int device, long address, long byteSize) implements MemoryEvent {}

    /// A block whose free was deferred can be handed out again.
    ///
    /// @param allocator the spec of the allocator, or the name of the pool, that has the block
    /// @param device the device
    /// @param address the address of the block
    /// @param byteSize bytes of the memory that waited
    record FreeCompleted(String allocator, int device, long address, long byteSize) implements MemoryEvent {}

    /// An allocator obtained a range from the driver, or mapped pages into one.
    ///
    /// @param allocator the spec of the allocator, or the name of the pool
    /// @param device the device
    /// @param address the address of the range
    /// @param byteSize the range's length in bytes
    record SegmentAcquired(String allocator, int device, long address, long byteSize) implements MemoryEvent {}

    /// An allocator gave a range back to the driver, or unmapped pages from one.
    ///
    /// @param allocator the spec of the allocator, or the name of the pool
    /// @param device the device
    /// @param address the address of the range
    /// @param byteSize the range's length in bytes
    record SegmentReleased(String allocator, int device, long address, long byteSize) implements MemoryEvent {}

    /// An allocator uses a physical page at another address from now on.
    ///
    /// @param allocator the spec of the allocator, or the name of the pool
    /// @param device the device
    /// @param formerAddress where the page was used before
    /// @param address where the page is used now
    /// @param byteSize the page's length in bytes
    record PageMoved(String allocator, int device, long formerAddress, long address, long byteSize)
            implements MemoryEvent {}

    /// An allocator gave idle memory back to the driver because it was asked to.
    ///
    /// @param allocator the spec of the allocator, or the name of the pool
    /// @param device the device
    /// @param keepBytes bytes that were allowed to stay reserved
    /// @param waited whether the trim was asked to wait for running work
    /// @param returnedBytes bytes that went back to the driver
    /// @param nanos how long the trim took, in nanoseconds
    record Trimmed(String allocator, int device, long keepBytes, boolean waited, long returnedBytes, long nanos)
            implements MemoryEvent {}

    /// Another allocator became current on a device.
    ///
    /// @param device the device
    /// @param former the spec of the former current allocator; empty if there was none
    /// @param allocator the spec of the new current allocator
    record CurrentChanged(int device, String former, String allocator) implements MemoryEvent {}

    /// A thread entered a scope.
    ///
    /// @param allocator the allocator or pool that serves the scope
    record ScopeEntered(String allocator) implements MemoryEvent {}

    /// A thread left a scope.
    ///
    /// @param allocator the allocator or pool that served the scope
    record ScopeLeft(String allocator) implements MemoryEvent {}

    /// A request found no memory, and Cistern tried a reclaim step.
    ///
    /// @param device the device
    /// @param byteSize bytes of the request
    /// @param step the step, the bytes that it gave, and how long it took
    record Reclaimed(int device, long byteSize, TriedStep step) implements MemoryEvent {}

    /// A request fails: there was no memory for it, or a limit refused it.
    ///
    /// @param report the facts known at that moment
    /// @param cause why it fails
    record OutOfMemory(OutOfMemoryReport report, RefusalCause cause) implements MemoryEvent {
        /// Why a request fails.
        public enum RefusalCause {
            /// There was no memory for the request.
            MEMORY,
            /// A [io.cistern.MemoryLimit] had no room for the request.
            LIMIT,
            /// The request can [never fit][io.cistern.errors.DeviceOutOfMemoryException#canNeverFit].
            TOO_LARGE
        }

        @Override
        public int device() {
            return report.device();
        }
    }

    /// The program made a stream wait for another one, by [io.cistern.CudaStream#await].
    ///
    /// @param device the device of both streams
    /// @param stream the stream that waits
    /// @param awaited the stream that it waits for
    record StreamWaited(int device, long stream, long awaited) implements MemoryEvent {}

    /// The end of a stream was announced.
    ///
    /// @param device the device
    /// @param stream the stream
    record StreamClosed(int device, long stream) implements MemoryEvent {}

    /// The program marked a moment by [io.cistern.Listeners#annotate].
    ///
    /// @param text the label that the program gave the moment
    record Annotated(String text) implements MemoryEvent {}
}
