package io.cistern.cuda;

/// Memory of pools and events for other processes of the same machine.
///
/// The process that owns the memory exports the pool once and each pointer that others may see; the others
/// import the pool, which gives no memory, and then pointers. The bytes that this facet hands out are opaque;
/// any way will do to send them, but a file descriptor needs one that carries descriptors.
///
/// **Order.** An imported pointer must not be used before the allocation has completed in the owner's stream,
/// and must be freed by all importers before the owner frees it. Events of [#createEvent] order the streams of
/// two processes as ordinary events order those of one.
///
/// **The older calls** (`cuIpcGetMemHandle`) know only memory of `cuMemAlloc`: see [#legacyHandle].
public interface Sharing {
    /// The length of exported pointers, exported events, fabric handles and legacy handles in bytes.
    int HANDLE_BYTES = 64;

    /// What the failure of [#legacyHandle] says.
    String ONLY_LINEAR =
            "only memory of cuMemAlloc has such a handle; for memory of a pool, export the pool and the pointer";

    /// Exports a pool as a file descriptor (`cuMemPoolExportToShareableHandle`), close-on-exec, a new one each
    /// time.
    ///
    /// @param pool a pool that was created with [HandleType#POSIX_FILE_DESCRIPTOR]
    /// @return the descriptor, which is the caller's to close; the pool does not need it
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the pool was not created for it
    int exportPool(int device, long pool);

    /// Exports a pool as a fabric handle.
    ///
    /// @param pool a pool that was created with [HandleType#FABRIC]
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the pool was not created for it
    byte[] exportPoolToFabric(int device, long pool);

    /// Imports a pool from a file descriptor (`cuMemPoolImportFromShareableHandle`). It can't allocate; it ends
    /// with [MemoryPools#destroy].
    ///
    /// @param device the device that the pool is on, as this process counts it
    /// @param fileDescriptor what [#exportPool] gave the other process, brought into this one; stays the caller's
    long importPool(int device, int fileDescriptor);

    /// Imports a pool from a fabric handle.
    ///
    /// @throws CudaException [CudaResult#NOT_PERMITTED] without an IMEX channel
    long importPoolFromFabric(int device, byte[] handle);

    /// Exports a live allocation of a pool that has been exported (`cuMemPoolExportPointer`), before or after the
    /// allocation was made.
    ///
    /// @param address the first byte of the allocation
    /// @throws CudaException [CudaResult#INVALID_VALUE] for other memory, and while its pool was never exported
    byte[] exportPointer(int device, long address);

    /// Maps an exported allocation (`cuMemPoolImportPointer`).
    ///
    /// @param pool from [#importPool]
    /// @return its address here, to be freed with [MemoryPools#free]
    /// @throws CudaException [CudaResult#INVALID_VALUE] if it is none of that pool's
    long importPointer(int device, long pool, byte[] pointer);

    /// Creates an event that other processes can open (`cuEventCreate` with `INTERPROCESS` and `DISABLE_TIMING`).
    long createEvent(int device);

    /// Exports an event (`cuIpcGetEventHandle`). The event must outlive its use by others.
    ///
    /// @throws CudaException if the event was not made by [#createEvent]
    byte[] exportEvent(int device, long event);

    /// Opens an event of another process (`cuIpcOpenEventHandle`): either process can record it, wait for it
    /// and ask it.
    ///
    /// @return an event of this process, to be destroyed with [Events#destroy]
    long openEvent(int device, byte[] handle);

    /// The handle of the older way to share memory (`cuIpcGetMemHandle`).
    ///
    /// @throws CudaException [CudaResult#INVALID_VALUE], with [#ONLY_LINEAR] as the reason, for memory of pools
    ///     and mappings
    byte[] legacyHandle(int device, long address);
}
