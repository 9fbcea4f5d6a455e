package io.cistern.spi;

/// Where an allocator tells what it did with the driver's memory. Never throws; may be called under the allocator's
/// locks.
public interface EventSink {
    /// A range was obtained from the driver, or pages were mapped into one.
    void segmentAcquired(int device, long address, long byteSize);

    /// A range went back to the driver, or pages were unmapped from one.
    void segmentReleased(int device, long address, long byteSize);

    /// The bytes of a device that the allocator holds from the driver changed, as
    /// [DeviceAllocator#reservedBytes] has them: it obtained memory, or gave it back. Without this nobody hears
    /// of [thresholds][io.cistern.MemoryMeasure] on what it holds beyond what is requested.
    ///
    /// @param change bytes obtained; below 0 what went back
    default void reservedChanged(int device, long change) {}

    /// The physical page at an address is used at another one from now on, where it was mapped now or before. The
    /// former address keeps its mapping, but nothing there is handed out while the page is used elsewhere.
    ///
    /// @param formerAddress where it was used before
    default void pageMoved(int device, long formerAddress, long address, long byteSize) {}
}
