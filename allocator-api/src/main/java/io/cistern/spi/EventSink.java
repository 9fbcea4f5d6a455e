package io.cistern.spi;

/// Where an allocator tells what it did with the driver's memory. Never throws; may be called under the allocator's
/// locks.
public interface EventSink {
    /// A range was obtained from the driver, or pages were mapped into one.
    void segmentAcquired(int device, long address, long byteSize);

    /// A range went back to the driver, or pages were unmapped from one.
    void segmentReleased(int device, long address, long byteSize);

    /// The physical page at an address was mapped at another one, where its bytes are used from now on. The former
    /// address keeps its mapping, but nothing there is handed out while the page is used elsewhere.
    ///
    /// @param formerAddress where it was used before
    default void pageMoved(int device, long formerAddress, long address, long byteSize) {}
}
