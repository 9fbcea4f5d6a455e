package io.cistern.nccl.internal.call;

/// The functions of libnccl that Cistern calls, each with its shape and the version that introduced it.
///
/// A *shape* spells a C prototype by the width of its parameters: `L` for 64 bits (pointers, handles, sizes), `I`
/// for 32 (`int`, enums), `U` for the 128 bytes of an `ncclUniqueId` by value.
public enum NcclCall {
    GET_VERSION("ncclGetVersion", "L"),
    GET_UNIQUE_ID("ncclGetUniqueId", "L"),
    GET_LAST_ERROR("ncclGetLastError", "L"),
    COMM_INIT_ALL("ncclCommInitAll", "LIL"),
    COMM_INIT_RANK("ncclCommInitRank", "LIUI"),
    COMM_SPLIT("ncclCommSplit", "LIILL"),
    COMM_FINALIZE("ncclCommFinalize", "L"),
    COMM_DESTROY("ncclCommDestroy", "L"),
    COMM_ABORT("ncclCommAbort", "L"),
    COMM_COUNT("ncclCommCount", "LL"),
    COMM_USER_RANK("ncclCommUserRank", "LL"),
    COMM_GET_ASYNC_ERROR("ncclCommGetAsyncError", "LL"),
    MEM_ALLOC("ncclMemAlloc", "LL"),
    MEM_FREE("ncclMemFree", "L"),
    COMM_REGISTER("ncclCommRegister", "LLLL"),
    COMM_DEREGISTER("ncclCommDeregister", "LL"),
    COMM_WINDOW_REGISTER("ncclCommWindowRegister", "LLLLI", 22703),
    COMM_WINDOW_DEREGISTER("ncclCommWindowDeregister", "LL", 22703),
    ALL_REDUCE("ncclAllReduce", "LLLIILL"),
    BROADCAST("ncclBroadcast", "LLLIILL"),
    REDUCE("ncclReduce", "LLLIIILL"),
    ALL_GATHER("ncclAllGather", "LLLILL"),
    REDUCE_SCATTER("ncclReduceScatter", "LLLIILL"),
    ALL_TO_ALL("ncclAlltoAll", "LLLILL", 22803),
    SEND("ncclSend", "LLIILL"),
    RECEIVE("ncclRecv", "LLIILL"),
    GROUP_START("ncclGroupStart", ""),
    GROUP_END("ncclGroupEnd", "");

    private final String symbol;
    private final String shape;
    private final int sinceVersion;

    NcclCall(String symbol, String shape) {
        this(symbol, shape, 0);
    }

    NcclCall(String symbol, String shape, int sinceVersion) {
        this.symbol = symbol;
        this.shape = shape;
        this.sinceVersion = sinceVersion;
    }

    /// Returns the C name.
    public String symbol() {
        return symbol;
    }

    public String shape() {
        return shape;
    }

    /// Returns the first version that has it, as `ncclGetVersion` codes it; 0 if all supported versions do.
    public int sinceVersion() {
        return sinceVersion;
    }
}
