package io.cistern.cuda;

import java.util.List;

/// Address ranges, physical memory, and the mappings between them (CUDA 10.2).
///
/// A range is reserved, physical memory is created, mapped into the range as a whole handle, and opened to devices.
/// One handle may be mapped at several addresses. None of these calls waits for running work, so whoever unmaps
/// must know by other means that the memory is no longer in use.
public interface VirtualMemory {
    /// The multiple that sizes and addresses must have (`cuMemGetAllocationGranularity`).
    ///
    /// @param recommended the size for best performance rather than the smallest possible one
    long granularity(PhysicalMemory memory, boolean recommended);

    /// Reserves addresses (`cuMemAddressReserve`).
    ///
    /// @param byteSize a multiple of the granularity
    /// @param byteAlignment a power of two, or 0 for the granularity
    /// @param hint the wished address, or 0
    long reserve(int device, long byteSize, long byteAlignment, long hint);

    /// Returns reserved addresses, whole as they were reserved (`cuMemAddressFree`).
    void freeReservation(int device, long address, long byteSize);

    /// Creates physical memory (`cuMemCreate`).
    ///
    /// @param byteSize a multiple of the granularity
    /// @return the handle
    /// @throws CudaException [CudaResult#OUT_OF_MEMORY]
    long create(long byteSize, PhysicalMemory memory);

    /// Drops the reference to physical memory (`cuMemRelease`); it is freed when no mapping of it is left either.
    void release(int device, long handle);

    /// Maps a whole handle at an address inside a reservation (`cuMemMap` with offset 0).
    void map(int device, long address, long byteSize, long handle);

    /// Removes whole mappings from a range (`cuMemUnmap`).
    void unmap(int device, long address, long byteSize);

    /// Opens a mapped range to a device, or closes it (`cuMemSetAccess`).
    ///
    /// Call it for mappings that lie side by side. A driver looks at the two ends of the range only: of driver
    /// 580 it is known that a hole at the end is refused, and that one in the middle is not.
    ///
    /// @param address the start of a mapping
    /// @param byteSize bytes up to the end of that mapping or of a later one; not 0
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the range begins or ends inside a mapping, or ends
    ///     where nothing is mapped; then no rights have changed
    void setAccess(int device, long address, long byteSize, MemoryLocation accessor, AccessRights rights);

    /// As the other form, for several places by as few calls of the driver as it allows.
    ///
    /// @param accessors at least one
    default void setAccess(
            int device, long address, long byteSize, List<MemoryLocation> accessors, AccessRights rights) {
        for (MemoryLocation accessor : accessors) {
            setAccess(device, address, byteSize, accessor, rights);
        }
    }

    /// What a place may do with the memory at an address (`cuMemGetAccess`).
    AccessRights access(int device, long address, MemoryLocation accessor);

    /// The handle mapped at an address, with one more reference that [#release] drops
    /// (`cuMemRetainAllocationHandle`).
    long retainHandle(int device, long address);
}
