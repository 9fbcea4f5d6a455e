package io.cistern.nccl;

/// The functions of NCCL, with the device made current and results checked. Implemented by libnccl and by the
/// simulation.
///
/// **Threads.** One thread at a time for each communicator; between [#groupStart] and [#groupEnd] all calls
/// come from one OS thread. [#abort] and [#asyncError] may be called during any call.
///
/// **Errors.** All methods throw an [NcclException] for a result other than success, and an
/// [UnsupportedOperationException] if this version of NCCL lacks the function.
interface NcclApi {
    /// A communicator of one rank.
    ///
    /// @param value the `ncclComm_t`
    /// @param device the rank's device
    record Handle(long value, int device) {}

    /// Returns the version as `ncclGetVersion` codes it.
    int version();

    /// Returns a human-readable name and version of the library.
    String description();

    UniqueId uniqueId();

    /// `ncclCommInitAll`
    long[] initAll(int[] devices);

    /// Calls `ncclCommInitRank` for ranks that follow each other, all in one group.
    long[] initRanks(UniqueId id, int rankCount, int firstRank, int[] devices);

    /// Calls `ncclCommSplit` for several ranks of this process, all in one group.
    ///
    /// @param colors the new communicator of each; negative for none
    /// @return the new handles; 0 for a rank that is in no new communicator
    long[] split(Handle[] communicators, int[] colors, int[] keys);

    int rankCount(Handle communicator);

    int rank(Handle communicator);

    NcclResult asyncError(Handle communicator);

    /// `ncclCommFinalize`
    void finish(Handle communicator);

    void destroy(Handle communicator);

    void abort(Handle communicator);

    void groupStart();

    void groupEnd();

    /// Enqueues a call. NCCL finds the device by the communicator. The number of a default stream means one of
    /// the current context, so for such a stream the device's context is made current.
    void enqueue(Handle communicator, Collective call, long stream);

    /// Makes calls with the device's context current, and restores the previous context afterwards. NCCL itself
    /// restores only the device, with its primary context, even if the program had another one.
    void onDevice(int device, Runnable calls);

    /// `ncclMemAlloc`
    long allocate(int device, long byteSize);

    /// `ncclMemFree`
    void free(int device, long address);

    /// `ncclCommRegister`
    ///
    /// @return the handle, or 0 if NCCL does not use registered memory here
    long register(Handle communicator, long address, long byteSize);

    void deregister(Handle communicator, long registration);

    /// Calls `ncclCommWindowRegister` with `NCCL_WIN_COLL_SYMMETRIC` for several ranks of this process, all in
    /// one group.
    ///
    /// @return the windows; 0 if the communicator has no symmetric memory
    long[] registerWindows(Handle[] communicators, long[] addresses, long byteSize);

    void deregisterWindow(Handle communicator, long window);
}
