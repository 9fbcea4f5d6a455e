package io.cistern.cuda;

/// Shares memory of pools, and events, with other processes on the same machine. A fabric handle also reaches
/// processes on other machines.
///
/// The process that owns the memory exports the pool once, and each pointer that other processes may use.
/// Another process first imports the pool, which by itself gives no access to memory, and then the
/// pointers. Exported handles and pointers are opaque bytes, which can be sent over any channel. A file
/// descriptor needs a channel that can carry descriptors, such as a Unix socket.
///
/// **Order.** An imported pointer must not be used before the allocation has completed in the owner's stream,
/// and all importers must free it before the owner does. Events from [#createEvent] order the streams of
/// two processes as ordinary events order those of one.
///
/// **Legacy handles** (`cuIpcGetMemHandle`) exist only for memory from `cuMemAlloc`: see [#legacyHandle].
public interface Sharing {
    /// The length of exported pointers, exported events, fabric handles and legacy handles in bytes.
    int HANDLE_BYTES = 64;

    /// The reason that [#legacyHandle] gives when it refuses memory that is not from `cuMemAlloc`.
    String ONLY_LINEAR =
            "only memory from cuMemAlloc has such a handle; for memory from a pool, export the pool and the pointer";

    /// Exports a pool as a new file descriptor with close-on-exec (`cuMemPoolExportToShareableHandle`).
    ///
    /// @param pool a pool that was created with [HandleType#POSIX_FILE_DESCRIPTOR]
    /// @return the descriptor, which the caller must close; the pool does not depend on it
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the pool was created without this handle type
    int exportPool(int device, long pool);

    /// Exports a pool as a fabric handle.
    ///
    /// @param pool a pool that was created with [HandleType#FABRIC]
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the pool was created without this handle type
    byte[] exportPoolToFabric(int device, long pool);

    /// Imports a pool from a file descriptor (`cuMemPoolImportFromShareableHandle`). The imported pool can't
    /// allocate; [MemoryPools#destroy] destroys it.
    ///
    /// @param device the device that the pool is on, by this process's ordinals
    /// @param fileDescriptor this process's copy of the descriptor that the other process got from
    ///     [#exportPool]; the caller still closes it
    long importPool(int device, int fileDescriptor);

    /// Imports a pool from a fabric handle.
    ///
    /// @throws CudaException [CudaResult#NOT_PERMITTED] without an IMEX channel
    long importPoolFromFabric(int device, byte[] handle);

    /// Exports a live allocation of a pool (`cuMemPoolExportPointer`). The pool must have been exported
    /// already, but the allocation may be older than that export.
    ///
    /// @param address the first byte of the allocation
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the memory is not from a pool, or its pool was not
    ///     exported yet
    byte[] exportPointer(int device, long address);

    /// Maps an exported allocation (`cuMemPoolImportPointer`).
    ///
    /// @param pool a pool from [#importPool]
    /// @return its address in this process, to be freed with [MemoryPools#free]
    /// @throws CudaException [CudaResult#INVALID_VALUE] if the pointer is not from that pool
    long importPointer(int device, long pool, byte[] pointer);

    /// Creates an event that other processes can open (`cuEventCreate` with `INTERPROCESS` and `DISABLE_TIMING`).
    long createEvent(int device);

    /// Exports an event (`cuIpcGetEventHandle`). The event must outlive its use by other processes.
    ///
    /// @throws CudaException if the event was not made by [#createEvent]
    byte[] exportEvent(int device, long event);

    /// Opens an event of another process (`cuIpcOpenEventHandle`). Either process can record it, wait for it
    /// and query it.
    ///
    /// @return an event of this process, to be destroyed with [Events#destroy]
    long openEvent(int device, byte[] handle);

    /// Returns a legacy handle of memory from `cuMemAlloc`, the older way to share memory
    /// (`cuIpcGetMemHandle`).
    ///
    /// @throws CudaException [CudaResult#INVALID_VALUE], with [#ONLY_LINEAR] as the reason, for memory of pools
    ///     and mappings
    byte[] legacyHandle(int device, long address);
}
