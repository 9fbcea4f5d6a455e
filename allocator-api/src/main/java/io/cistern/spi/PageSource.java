package io.cistern.spi;

import io.cistern.cuda.MemoryLocation;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.List;

/// A source of physical memory handles, for allocators that grow by pages. The allocator maps the handles.
public non-sealed interface PageSource extends SegmentSource {
    /// Returns the properties of this source's memory on a device.
    PageTraits traits(int device);

    /// Creates physical memory.
    ///
    /// @param byteSize a multiple of the granularity
    /// @return the handle of the memory
    /// @throws DeviceOutOfMemoryException if there is no memory
    long create(long byteSize, int device);

    /// Returns the devices that may read and write the memory through its mappings, and the host if it may,
    /// too. The default is only the memory's own device.
    default List<MemoryLocation> accessors(int device) {
        return List.of(MemoryLocation.device(device));
    }

    /// Called after the allocator mapped a handle and opened the mapping to all [#accessors]. Must not throw.
    ///
    /// @param address the address of the mapping; the allocator hands out blocks there from now on
    default void mapped(int device, long address, long byteSize, long handle) {}

    /// Returns whether the allocator may remove a mapping. Called before the removal, when no work uses the
    /// mapping any more. Must not throw.
    ///
    /// @return false if other code still needs the memory at this address; then the mapping stays
    default boolean unmapping(int device, long address, long byteSize) {
        return true;
    }

    /// Called when the allocator has closed, for a range of addresses in which mappings have
    /// [stayed][#unmapping]. From now on, the range belongs to the source, which must free it
    /// (`cuMemAddressFree`) after unmapping the last mapping there. Must not throw.
    ///
    /// @param address the beginning of the reserved range
    /// @param byteSize the length of the reserved range in bytes
    default void abandoned(int device, long address, long byteSize) {}

    /// Releases a handle. Its memory goes back to the driver when its last mapping is removed.
    void release(long handle, long byteSize, int device);
}
