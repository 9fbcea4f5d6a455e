package io.cistern.cuda;

import java.lang.foreign.MemorySegment;

/// Allocates plain device memory and pinned host memory, and queries the attributes of pointers.
public interface LinearMemory {
    /// Allocates device memory (`cuMemAlloc_v2`), aligned to 256 bytes or more. May wait for running work.
    ///
    /// @param byteSize at least 1; 0 is [CudaResult#INVALID_VALUE]
    /// @throws CudaException [CudaResult#OUT_OF_MEMORY] if the device has too little free memory
    long allocate(int device, long byteSize);

    /// Frees memory from [#allocate] (`cuMemFree_v2`). Waits for all running work of the device. Freeing address
    /// 0 does nothing.
    ///
    /// This also frees memory of a pool, and then does not wait. However, the pool still counts that memory
    /// in [PoolAttribute#USED_CURRENT], even after synchronisations (seen with driver 580). Use
    /// [MemoryPools#free] to keep the counter right.
    ///
    /// @throws CudaException [CudaResult#INVALID_VALUE] for an address that is not the start of a live allocation
    void free(int device, long address);

    /// Returns the free and total bytes of the device, taking other processes into account
    /// (`cuMemGetInfo_v2`).
    MemoryInfo info(int device);

    /// Returns the free bytes of the device, like [#info], but creates no garbage.
    long freeBytes(int device);

    /// Returns the allocation that an address lies in (`cuMemGetAddressRange_v2`).
    ///
    /// @throws CudaException [CudaResult#NOT_FOUND] or [CudaResult#INVALID_VALUE] for an unknown address
    AddressRange range(int device, long address);

    /// Allocates pinned host memory that all devices can access (`cuMemHostAlloc` with `PORTABLE | DEVICEMAP`).
    ///
    /// @return a native segment of `byteSize` bytes, valid until [#freeHost], whose address is also its device
    ///     address
    MemorySegment allocateHost(int device, long byteSize);

    /// Frees pinned host memory (`cuMemFreeHost`).
    void freeHost(int device, MemorySegment memory);

    /// Pins existing native memory (`cuMemHostRegister_v2`).
    void registerHost(int device, MemorySegment memory);

    /// Unpins memory that [#registerHost] pinned (`cuMemHostUnregister`).
    void unregisterHost(int device, MemorySegment memory);

    /// Returns one attribute of a pointer (`cuPointerGetAttribute`).
    ///
    /// @throws CudaException [CudaResult#INVALID_VALUE] for an address that the driver does not know
    long attribute(int device, PointerAttribute attribute, long address);

    /// Free and total bytes of a device.
    ///
    /// @param freeBytes the free bytes
    /// @param totalBytes the size of the device's memory in bytes
    record MemoryInfo(long freeBytes, long totalBytes) {}

    /// A range of device addresses.
    ///
    /// @param address its first byte
    /// @param byteSize its length
    record AddressRange(long address, long byteSize) {}
}
