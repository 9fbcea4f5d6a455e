package io.cistern.spi;

/// An optional ability of a [DeviceAllocator]: it tells which of the driver's allocations a block lies in, which
/// is what sharing with another process needs.
public interface BaseRange {
    /// The driver's allocation around a live block.
    ///
    /// @param address where a live block of this allocator begins
    /// @param device the block's device
    Segment base(long address, int device);
}
