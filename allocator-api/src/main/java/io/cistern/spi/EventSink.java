package io.cistern.spi;

/// Receives an allocator's reports about memory obtained from the driver and given back, moved pages and
/// deferred frees. The methods never throw, and may be called under the allocator's locks.
public interface EventSink {
    /// Reports that a range was obtained from the driver, or that pages were mapped into one.
    void segmentAcquired(int device, long address, long byteSize);

    /// Reports that a range went back to the driver, or that pages were unmapped from one.
    void segmentReleased(int device, long address, long byteSize);

    /// Reports that the allocator obtained memory or gave it back, so that its
    /// [DeviceAllocator#reservedBytes] changed. Without this report,
    /// [thresholds][io.cistern.MemoryMeasure#RESERVED] count only the bytes requested from the allocator.
    ///
    /// @param change bytes obtained; negative for bytes given back
    default void reservedChanged(int device, long change) {}

    /// Reports that a physical page is now used at another address, where it is mapped as well. The page
    /// stays mapped at the former address, but nothing there is handed out while the page is used
    /// elsewhere.
    ///
    /// @param formerAddress where the page was used before
    default void pageMoved(int device, long formerAddress, long address, long byteSize) {}

    /// Reports that a freed block can't be handed out again yet, because another stream or a graph may
    /// still use it.
    ///
    /// @param byteSize bytes of the waiting memory, at least the bytes requested
    default void freeDeferred(int device, long address, long byteSize) {}

    /// Reports that a block whose free was [deferred][#freeDeferred] can be handed out again.
    default void freeCompleted(int device, long address, long byteSize) {}
}
