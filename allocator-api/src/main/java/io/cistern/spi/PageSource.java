package io.cistern.spi;

import io.cistern.cuda.MemoryLocation;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.List;

/// A source of physical memory by handles, which is what page growth needs. Mapping is the allocator's business.
public non-sealed interface PageSource extends SegmentSource {
    /// Returns what its memory is like on a device.
    PageTraits traits(int device);

    /// Creates physical memory.
    ///
    /// @param byteSize a multiple of the granularity
    /// @return the handle
    /// @throws DeviceOutOfMemoryException when there is none
    long create(long byteSize, int device);

    /// Returns which devices, and whether the host, may read and write the memory where it is mapped: its own device
    /// unless a source adds others.
    default List<MemoryLocation> accessors(int device) {
        return List.of(MemoryLocation.device(device));
    }

    /// Hears that a handle was mapped, and opened to all [#accessors]. Must not throw.
    ///
    /// @param address where it was mapped; blocks there are handed out from now on
    default void mapped(int device, long address, long byteSize, long handle) {}

    /// Returns whether a mapping that it heard of may be taken away. No work uses it any more. Must not throw.
    ///
    /// @return false if somebody else still needs the memory where it is; then it stays
    default boolean unmapping(int device, long address, long byteSize) {
        return true;
    }

    /// Gives a handle up. Its memory goes back to the driver when no mapping of it is left.
    void release(long handle, long byteSize, int device);
}
