package io.cistern.spi;

/// Receives what an allocator did with the driver's memory. Its methods never throw, and may be called under
/// the allocator's locks.
public interface EventSink {
    /// Reports that a range was obtained from the driver, or that pages were mapped into one.
    void segmentAcquired(int device, long address, long byteSize);

    /// Reports that a range went back to the driver, or that pages were unmapped from one.
    void segmentReleased(int device, long address, long byteSize);

    /// Reports that the allocator obtained memory or gave it back, so that its [DeviceAllocator#reservedBytes]
    /// changed. Without this, [thresholds][io.cistern.MemoryMeasure] see only what is requested of it.
    ///
    /// @param change bytes obtained; negative for bytes given back
    default void reservedChanged(int device, long change) {}

    /// Reports that a physical page is used at another address from now on, where it is mapped too. The former
    /// address keeps its mapping, but nothing there is handed out while the page is used elsewhere.
    ///
    /// @param formerAddress where it was used before
    default void pageMoved(int device, long formerAddress, long address, long byteSize) {}

    /// Reports that a freed block can't be handed out again yet, since another stream may still use it.
    ///
    /// @param byteSize bytes of the memory that waits: those that were asked for or more
    default void freeDeferred(int device, long address, long byteSize) {}

    /// Reports that a block whose free was [deferred][#freeDeferred] can be handed out again.
    default void freeCompleted(int device, long address, long byteSize) {}
}
