package io.cistern.cuda;

import java.lang.foreign.MemorySegment;

/// Device memory in plain ranges, pinned host memory, and what the driver knows about a pointer.
public interface LinearMemory {
    /// Allocates device memory (`cuMemAlloc_v2`), aligned to 256 bytes or more. May wait for running work.
    ///
    /// @param byteSize at least 1; 0 is [CudaResult#INVALID_VALUE]
    /// @throws CudaException [CudaResult#OUT_OF_MEMORY] when the device has no such range
    long allocate(int device, long byteSize);

    /// Frees memory from [#allocate] (`cuMemFree_v2`). Waits for all running work of the device. Address 0 does
    /// nothing.
    ///
    /// Memory of a pool is taken too, without waiting, but the pool goes on counting it in
    /// [PoolAttribute#USED_CURRENT], over synchronisations too (seen with driver 580); [MemoryPools#free] is the
    /// way that keeps its books right.
    ///
    /// @throws CudaException [CudaResult#INVALID_VALUE] for an address that is not the start of a live allocation
    void free(int device, long address);

    /// Free and total bytes of the device as the driver sees them now, other processes included
    /// (`cuMemGetInfo_v2`).
    MemoryInfo info(int device);

    /// Free bytes of the device, as [#info] but without garbage.
    long freeBytes(int device);

    /// The allocation that an address lies in (`cuMemGetAddressRange_v2`).
    ///
    /// @throws CudaException [CudaResult#NOT_FOUND] or [CudaResult#INVALID_VALUE] for an unknown address
    AddressRange range(int device, long address);

    /// Allocates pinned host memory that all devices see (`cuMemHostAlloc` with `PORTABLE | DEVICEMAP`).
    ///
    /// @return a native segment of `byteSize` bytes whose address is also its device address; it lives until
    ///     [#freeHost]
    MemorySegment allocateHost(int device, long byteSize);

    /// Frees pinned host memory (`cuMemFreeHost`).
    void freeHost(int device, MemorySegment memory);

    /// Pins existing native memory (`cuMemHostRegister_v2`).
    void registerHost(int device, MemorySegment memory);

    /// Unpins memory pinned by [#registerHost] (`cuMemHostUnregister`).
    void unregisterHost(int device, MemorySegment memory);

    /// One attribute of a pointer (`cuPointerGetAttribute`).
    ///
    /// @throws CudaException [CudaResult#INVALID_VALUE] for an address the driver does not know
    long attribute(int device, PointerAttribute attribute, long address);

    /// Free and total bytes of a device.
    ///
    /// @param freeBytes bytes free now
    /// @param totalBytes all bytes
    record MemoryInfo(long freeBytes, long totalBytes) {}

    /// A range of device addresses.
    ///
    /// @param address its first byte
    /// @param byteSize its length
    record AddressRange(long address, long byteSize) {}
}
