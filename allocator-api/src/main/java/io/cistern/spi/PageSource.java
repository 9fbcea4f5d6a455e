package io.cistern.spi;

import io.cistern.DeviceOutOfMemoryException;

/// A source of physical memory by handles, which is what page growth needs. Mapping is the allocator's business.
public non-sealed interface PageSource extends SegmentSource {
    /// What its memory is like on a device.
    PageTraits traits(int device);

    /// Creates physical memory.
    ///
    /// @param byteSize a multiple of the granularity
    /// @return the handle
    /// @throws DeviceOutOfMemoryException when there is none
    long create(long byteSize, int device);

    /// Drops a handle; its memory goes when no mapping of it is left.
    void release(long handle, long byteSize, int device);
}
