package io.cistern.cuda;

import java.util.List;

/// Manages address ranges, physical memory, and the mappings between them (CUDA 10.2).
///
/// A program reserves a range, creates physical memory, maps the whole handle into the range, and opens it to
/// devices. One handle may be mapped at several addresses. None of these calls waits for running work, so a
/// thread that unmaps memory must make sure in another way that no work uses it.
public interface VirtualMemory {
    /// Returns the unit of sizes and addresses in bytes (`cuMemGetAllocationGranularity`).
    ///
    /// @param recommended true for the unit with the best performance, false for the smallest one
    long granularity(PhysicalMemory memory, boolean recommended);

    /// Reserves addresses (`cuMemAddressReserve`).
    ///
    /// @param byteSize a multiple of the granularity
    /// @param byteAlignment a power of two, or 0 for the granularity
    /// @param hint the desired address, or 0
    long reserve(int device, long byteSize, long byteAlignment, long hint);

    /// Frees a whole reservation (`cuMemAddressFree`).
    void freeReservation(int device, long address, long byteSize);

    /// Creates physical memory (`cuMemCreate`).
    ///
    /// @param byteSize a multiple of the granularity
    /// @return the handle
    /// @throws CudaException [CudaResult#OUT_OF_MEMORY]
    long create(long byteSize, PhysicalMemory memory);

    /// Drops the reference to physical memory (`cuMemRelease`). The memory is freed when no mapping of it is
    /// left either.
    void release(int device, long handle);

    /// Maps a whole handle at an address inside a reservation (`cuMemMap` with offset 0).
    void map(int device, long address, long byteSize, long handle);

    /// Removes whole mappings from a range (`cuMemUnmap`).
    void unmap(int device, long address, long byteSize);

    /// Opens a mapped range to a device, or closes it (`cuMemSetAccess`).
    ///
    /// Call it for adjacent mappings. A driver checks only the two ends of the range: driver 580 refuses a hole
    /// at the end. It accepts one in the middle, and opens nothing after it.
    ///
    /// @param address the start of a mapping
    /// @param byteSize bytes up to the end of that mapping or of a later one; not 0
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the range begins or ends inside a mapping, or
    ///     nothing is mapped at its end; then no rights have changed
    void setAccess(int device, long address, long byteSize, MemoryLocation accessor, AccessRights rights);

    /// Opens or closes a range for several places, with as few driver calls as possible.
    ///
    /// @param accessors at least one
    default void setAccess(
            int device, long address, long byteSize, List<MemoryLocation> accessors, AccessRights rights) {
        for (MemoryLocation accessor : accessors) {
            setAccess(device, address, byteSize, accessor, rights);
        }
    }

    /// Returns the rights of a place to the memory at an address (`cuMemGetAccess`).
    AccessRights access(int device, long address, MemoryLocation accessor);

    /// Returns the handle that is mapped at an address, with one more reference, which [#release] drops
    /// (`cuMemRetainAllocationHandle`).
    long retainHandle(int device, long address);
}
