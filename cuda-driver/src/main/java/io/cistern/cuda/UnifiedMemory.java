package io.cistern.cuda;

/// Managed memory: ranges that the host and all devices use at one address. Their pages are where they were used
/// last, so together they may be larger than a device. [LinearMemory#free] frees them.
public interface UnifiedMemory {
    /// Allocates managed memory for all streams and devices (`cuMemAllocManaged`). It takes no device memory
    /// before it is used.
    ///
    /// @param device any; it must be able to use managed memory
    /// @param byteSize at least 1; 0 is [CudaResult#INVALID_VALUE]
    /// @throws CudaException [CudaResult#OUT_OF_MEMORY], [CudaResult#NOT_SUPPORTED] where the device has none
    long allocate(int device, long byteSize);

    /// Moves the pages of a range in stream order (`cuMemPrefetchAsync_v2`, driver 12.2). What a device has no
    /// room for takes the place of other managed pages.
    ///
    /// @param address managed memory
    /// @param target a device, the host, or one of its NUMA nodes
    /// @throws CudaException [CudaResult#INVALID_VALUE] if it is no managed memory, [CudaResult#NOT_SUPPORTED]
    ///     from an older driver
    void prefetch(int device, long address, long byteSize, MemoryLocation target, long stream);

    /// Says how a range is going to be used (`cuMemAdvise_v2`, driver 12.2).
    ///
    /// @param address managed memory
    /// @param place whom it is about; of no meaning for [MemoryAdvice#SET_READ_MOSTLY] and its opposite, and
    ///     for [MemoryAdvice#UNSET_PREFERRED_LOCATION]
    /// @throws CudaException [CudaResult#INVALID_VALUE] if it is no managed memory, [CudaResult#NOT_SUPPORTED]
    ///     from an older driver
    void advise(int device, long address, long byteSize, MemoryAdvice advice, MemoryLocation place);
}
