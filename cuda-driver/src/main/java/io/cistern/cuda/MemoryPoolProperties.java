package io.cistern.cuda;

/// What a new pool is made of (`CUmemPoolProps`).
///
/// @param location where its memory lives: a device, [the host][MemoryLocation#host()], or one of the host's NUMA
///     nodes. Memory of the host is reached by no device until [MemoryPools#setAccess] says so
/// @param handleTypes bits of [HandleType] it may be exported as; 0 for none
/// @param maxByteSize most bytes it may reserve, or 0 for the driver's own limit; the driver rounds it up
/// @param hardwareDecompress whether the device's decompression engine may write to it
///     (`CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS`, CUDA 12.8)
/// @param managed whether its memory is managed (`CU_MEM_ALLOCATION_TYPE_MANAGED`, CUDA 13.0): then `location` is
/// where it
///     prefers to be, and it is not exportable
public record MemoryPoolProperties(
        MemoryLocation location, int handleTypes, long maxByteSize, boolean hardwareDecompress, boolean managed) {
    /// A pool that is not for the decompression engine, and not managed.
    public MemoryPoolProperties(MemoryLocation location, int handleTypes, long maxByteSize) {
        this(location, handleTypes, maxByteSize, false, false);
    }

    /// A pool of managed memory that prefers to be on a device.
    public static MemoryPoolProperties managed(int device) {
        return new MemoryPoolProperties(MemoryLocation.device(device), 0, 0, false, true);
    }

    /// A plain pool on a device: not exportable, no maximum.
    public static MemoryPoolProperties onDevice(int device) {
        return new MemoryPoolProperties(MemoryLocation.device(device), 0, 0);
    }
}
