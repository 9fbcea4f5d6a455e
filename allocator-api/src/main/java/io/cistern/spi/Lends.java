package io.cistern.spi;

/// An optional ability of a [DeviceAllocator]: it can say whether it has idle memory for a request, and give that
/// and nothing else. A [io.cistern.MemoryPool] needs it to lend to others when they run out.
public interface Lends {
    /// Allocates from idle memory that the stream may use now, as [DeviceAllocator#allocate] would; obtains
    /// nothing from the driver and waits for nothing. The block is freed with [DeviceAllocator#free].
    ///
    /// @param byteSize bytes wanted, at least 1
    /// @param device the device's ordinal
    /// @param stream the stream on which it is used first
    /// @return the address, or 0 if no idle block fits
    long tryAllocate(long byteSize, int device, long stream);
}
