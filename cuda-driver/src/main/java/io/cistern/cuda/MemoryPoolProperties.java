package io.cistern.cuda;

/// The properties of a new pool (`CUmemPoolProps`).
///
/// @param location the place of its memory: a device, [the host][MemoryLocation#host()], or one of the host's
///     NUMA nodes. No device can access host memory until [MemoryPools#setAccess] allows it
/// @param handleTypes bits of the [HandleType]s that it may be exported as; 0 for none
/// @param maxByteSize most bytes it may reserve, or 0 for the driver's own limit; the driver rounds it up
/// @param hardwareDecompress whether the device's decompression engine may write to it
///     (`CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS`, CUDA 12.8)
/// @param managed whether its memory is managed (`CU_MEM_ALLOCATION_TYPE_MANAGED`, CUDA 13.0). If so,
///     `location` is its preferred place, and the pool can't be exported
public record MemoryPoolProperties(
        MemoryLocation location, int handleTypes, long maxByteSize, boolean hardwareDecompress, boolean managed) {
    /// Describes a pool that is neither for the decompression engine nor managed.
    public MemoryPoolProperties(MemoryLocation location, int handleTypes, long maxByteSize) {
        this(location, handleTypes, maxByteSize, false, false);
    }

    /// Returns the properties of a pool of managed memory whose preferred place is a device.
    public static MemoryPoolProperties managed(int device) {
        return new MemoryPoolProperties(MemoryLocation.device(device), 0, 0, false, true);
    }

    /// Returns the properties of a plain pool on a device: not exportable, no maximum.
    public static MemoryPoolProperties onDevice(int device) {
        return new MemoryPoolProperties(MemoryLocation.device(device), 0, 0);
    }
}
