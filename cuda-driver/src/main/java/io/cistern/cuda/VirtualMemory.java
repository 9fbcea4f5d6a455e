package io.cistern.cuda;

import java.util.List;

/// Manages address ranges, physical memory, and the mappings between them (since CUDA 10.2).
///
/// A program reserves a range of addresses, creates physical memory, maps the whole of it into the range, and
/// gives devices access. Physical memory is named by a handle; one handle may be mapped at several addresses.
/// None of these calls waits for running work. Before a program unmaps memory, the program itself must make
/// sure that no work still uses it.
public interface VirtualMemory {
    /// Returns the granularity in bytes. Sizes and addresses of such memory must be multiples of it
    /// (`cuMemGetAllocationGranularity`).
    ///
    /// @param recommended true for the granularity with the best performance, false for the smallest one
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

    /// Drops a reference to physical memory (`cuMemRelease`). The driver frees the memory when neither a
    /// reference nor a mapping of it is left.
    void release(int device, long handle);

    /// Maps a whole handle at an address inside a reservation (`cuMemMap` with offset 0).
    void map(int device, long address, long byteSize, long handle);

    /// Removes whole mappings from a range (`cuMemUnmap`).
    void unmap(int device, long address, long byteSize);

    /// Sets the access rights of one place to a mapped range (`cuMemSetAccess`).
    ///
    /// The mappings in the range must be adjacent. The driver checks this only in part: driver 580 refuses
    /// a range whose end is not mapped, but for a range with a hole in the middle it reports success and
    /// sets no rights after the hole.
    ///
    /// @param address the start of a mapping
    /// @param byteSize bytes up to the end of that mapping or of a later one; not 0
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the range begins or ends inside a mapping, or if its
    ///     end is not mapped. No rights have changed in this case
    void setAccess(int device, long address, long byteSize, MemoryLocation accessor, AccessRights rights);

    /// Sets the access rights of several places to a mapped range. This default makes one driver call for each
    /// place; the real driver's implementation combines them.
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

    /// Returns the handle of the physical memory that is mapped at an address, and adds a reference to that
    /// memory, which [#release] drops (`cuMemRetainAllocationHandle`).
    long retainHandle(int device, long address);
}
