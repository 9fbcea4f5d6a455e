package io.cistern.cuda;

/// Allocates managed memory: ranges that the host and all devices use at the same addresses. The driver moves
/// their pages to where they are used, so the ranges together may be larger than a device's memory.
/// [LinearMemory#free] frees a range.
public interface UnifiedMemory {
    /// Allocates managed memory for all streams and devices (`cuMemAllocManaged`). It takes no device memory
    /// before its first use.
    ///
    /// @param device any device that can use managed memory
    /// @param byteSize at least 1; 0 is [CudaResult#INVALID_VALUE]
    /// @throws CudaException [CudaResult#OUT_OF_MEMORY], or [CudaResult#NOT_SUPPORTED] if the device does not
    ///     support managed memory
    long allocate(int device, long byteSize);

    /// Moves the pages of a range in stream order (`cuMemPrefetchAsync_v2`, driver 12.2). If the target device
    /// has no room, they displace other managed pages.
    ///
    /// @param address managed memory
    /// @param target a device, the host, or one of its NUMA nodes
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the range is not managed memory,
    ///     [CudaResult#NOT_SUPPORTED] from an older driver
    void prefetch(int device, long address, long byteSize, MemoryLocation target, long stream);

    /// Advises the driver how a range will be used (`cuMemAdvise_v2`, driver 12.2).
    ///
    /// @param address managed memory
    /// @param place the place that the advice is about; ignored for [MemoryAdvice#SET_READ_MOSTLY],
    ///     [MemoryAdvice#UNSET_READ_MOSTLY] and [MemoryAdvice#UNSET_PREFERRED_LOCATION]
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the range is not managed memory,
    ///     [CudaResult#NOT_SUPPORTED] from an older driver
    void advise(int device, long address, long byteSize, MemoryAdvice advice, MemoryLocation place);

    /// Returns the advice that holds for a range, and the target of its last prefetch (`cuMemRangeGetAttribute`,
    /// driver 12.2).
    ///
    /// @param address managed memory
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the range is not managed memory; an unspecified
    ///     error if the driver is older than 12.2
    RangeAttributes attributes(int device, long address, long byteSize);

    /// Drops the contents of a range in stream order, so that the driver need not move them
    /// (`cuMemDiscardBatchAsync`, driver 13.0). Reads before the next write return undefined bytes.
    /// [Prefetch][#prefetch] the range before it is written: an H200 lost data that was written to a
    /// discarded range without a prefetch.
    ///
    /// @param address managed memory from [#allocate]. Pass whole pages: CUDA does not document what happens to
    ///     the rest of a page
    /// @param stream not the legacy default stream
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the range is not managed memory,
    ///     [CudaResult#NOT_SUPPORTED] from an older driver
    void discard(int device, long address, long byteSize, long stream);
}
