package io.cistern.spi;

/// Where an allocator tells what it did with the driver's memory. Never throws; may be called under the allocator's
/// locks.
public interface EventSink {
    /// A range was obtained from the driver, or pages were mapped into one.
    void segmentAcquired(int device, long address, long byteSize);

    /// A range went back to the driver, or pages were unmapped from one.
    void segmentReleased(int device, long address, long byteSize);
}
