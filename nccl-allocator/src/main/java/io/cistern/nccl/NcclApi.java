package io.cistern.nccl;

/// NCCL as its functions, with devices made current and results checked: libnccl itself, or the simulation of it.
///
/// **Threads.** One thread at a time for each communicator; between [#groupStart] and [#groupEnd] all calls come from
/// one OS thread. [#abort] and [#asyncError] may be called beside any call.
///
/// **Errors.** All throw [NcclException] for a result other than success, and [UnsupportedOperationException] for what
/// this version of NCCL has not got.
interface NcclApi {
    /// A communicator of one rank.
    ///
    /// @param value the `ncclComm_t`
    /// @param device the rank's device
    record Handle(long value, int device) {}

    /// As `ncclGetVersion` codes it.
    int version();

    /// For people.
    String description();

    UniqueId uniqueId();

    /// `ncclCommInitAll`
    long[] initAll(int[] devices);

    /// `ncclCommInitRank` for ranks that follow each other, all at once.
    long[] initRanks(UniqueId id, int rankCount, int firstRank, int[] devices);

    /// `ncclCommSplit` for several ranks of this process, all at once; 0 where a rank is in no new communicator.
    ///
    /// @param colors the new communicator of each; negative for none
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

    /// NCCL finds the device by the communicator. For a default stream, a number that names one of the current context,
    /// the device's context is made current.
    void enqueue(Handle communicator, Collective call, long stream);

    /// Makes calls with the device's context current, and then the one again that was before. NCCL gives back the
    /// device, which is its primary context, where the program may have had another.
    void onDevice(int device, Runnable calls);

    /// `ncclMemAlloc`
    long allocate(int device, long byteSize);

    /// `ncclMemFree`
    void free(int device, long address);

    /// `ncclCommRegister`
    ///
    /// @return the handle, or 0 if NCCL makes no use of registered memory here
    long register(Handle communicator, long address, long byteSize);

    void deregister(Handle communicator, long registration);

    /// `ncclCommWindowRegister` with `NCCL_WIN_COLL_SYMMETRIC` for several ranks of this process, all at once.
    ///
    /// @return the windows; 0 where the communicator has no symmetric memory
    long[] registerWindows(Handle[] communicators, long[] addresses, long byteSize);

    void deregisterWindow(Handle communicator, long window);
}
