package io.cistern.cuda;

/// Allocates in stream order (`cuMemAllocAsync` and relatives, CUDA 11.2) from pools. [Sharing] exports pools
/// to other processes.
public interface MemoryPools {
    /// Creates a pool (`cuMemPoolCreate`). Its release threshold is 0 at first: unused memory is returned
    /// to the device at the next synchronisation.
    long create(MemoryPoolProperties properties);

    /// Destroys a pool (`cuMemPoolDestroy`); memory still allocated from it stays valid until it is freed.
    void destroy(int device, long pool);

    /// Returns the device's default pool, which always exists and can't be destroyed
    /// (`cuDeviceGetDefaultMemPool`).
    long defaultPool(int device);

    /// Returns the pool from which [#allocate(int, long, long)] takes memory (`cuDeviceGetMemPool`).
    long currentPool(int device);

    /// Sets the pool from which [#allocate(int, long, long)] takes memory (`cuDeviceSetMemPool`).
    void setCurrentPool(int device, long pool);

    /// Allocates from the device's current pool in stream order (`cuMemAllocAsync`).
    ///
    /// @return the address; 0 for 0 bytes, and freeing 0 does nothing
    /// @throws CudaException [CudaResult#OUT_OF_MEMORY]
    long allocate(int device, long byteSize, long stream);

    /// Allocates from a pool in stream order (`cuMemAllocFromPoolAsync`).
    long allocateFrom(int device, long pool, long byteSize, long stream);

    /// Frees memory in stream order (`cuMemFreeAsync`).
    void free(int device, long address, long stream);

    /// Returns an attribute (`cuMemPoolGetAttribute`).
    long attribute(int device, long pool, PoolAttribute attribute);

    /// Sets an attribute (`cuMemPoolSetAttribute`). A high-water mark can only be set to 0; a current value
    /// can't be set.
    void setAttribute(int device, long pool, PoolAttribute attribute, long value);

    /// Releases unused memory to the device until at most `keepBytes` are reserved (`cuMemPoolTrimTo`).
    /// Only memory whose frees have completed is released. To release all unused memory, synchronise first.
    void trimTo(int device, long pool, long keepBytes);

    /// Sets the access rights of the device `peer` to the pool's memory, present and future
    /// (`cuMemPoolSetAccess`).
    void setAccess(int device, long pool, int peer, AccessRights rights);

    /// Returns the access rights of the device `peer` to the pool's memory (`cuMemPoolGetAccess`).
    AccessRights access(int device, long pool, int peer);
}
