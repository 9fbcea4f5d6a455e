package io.cistern.cuda;

import static io.cistern.cuda.DriverCall.Kind.MEMORY;
import static io.cistern.cuda.DriverCall.Kind.OTHER;
import static io.cistern.cuda.DriverCall.Kind.STREAM;

/// The driver functions that Cistern calls, each with the exact symbol that `libcuda.so.1` exports for it.
///
/// The binding looks up these symbols, and error messages quote them. The simulated GPU has a cost for each
/// function and can inject failures into it. [CallCounts] counts the calls of each function. If the
/// unsuffixed symbol is a legacy entry point with 32-bit sizes, the `_v2` symbol is bound.
public enum DriverCall {
    INIT("cuInit", OTHER),
    DRIVER_GET_VERSION("cuDriverGetVersion", OTHER),
    DEVICE_GET("cuDeviceGet", OTHER),
    DEVICE_GET_COUNT("cuDeviceGetCount", OTHER),
    DEVICE_GET_NAME("cuDeviceGetName", OTHER),
    DEVICE_GET_UUID("cuDeviceGetUuid_v2", OTHER),
    DEVICE_TOTAL_MEM("cuDeviceTotalMem_v2", OTHER),
    DEVICE_GET_ATTRIBUTE("cuDeviceGetAttribute", OTHER),
    DEVICE_REGISTER_ASYNC_NOTIFICATION("cuDeviceRegisterAsyncNotification", OTHER),
    DEVICE_UNREGISTER_ASYNC_NOTIFICATION("cuDeviceUnregisterAsyncNotification", OTHER),
    PRIMARY_CONTEXT_RETAIN("cuDevicePrimaryCtxRetain", OTHER),
    PRIMARY_CONTEXT_RELEASE("cuDevicePrimaryCtxRelease_v2", OTHER),
    CONTEXT_SET_CURRENT("cuCtxSetCurrent", OTHER),
    CONTEXT_GET_CURRENT("cuCtxGetCurrent", OTHER),
    CONTEXT_GET_DEVICE("cuCtxGetDevice", OTHER),
    CONTEXT_SYNCHRONIZE("cuCtxSynchronize", STREAM),

    MEM_ALLOC("cuMemAlloc_v2", MEMORY),
    MEM_FREE("cuMemFree_v2", MEMORY),
    MEM_GET_INFO("cuMemGetInfo_v2", OTHER),
    MEM_GET_ADDRESS_RANGE("cuMemGetAddressRange_v2", OTHER),
    MEM_HOST_ALLOC("cuMemHostAlloc", MEMORY),
    MEM_FREE_HOST("cuMemFreeHost", MEMORY),
    MEM_HOST_REGISTER("cuMemHostRegister_v2", MEMORY),
    MEM_HOST_UNREGISTER("cuMemHostUnregister", MEMORY),
    MEM_HOST_GET_DEVICE_POINTER("cuMemHostGetDevicePointer_v2", OTHER),
    POINTER_GET_ATTRIBUTE("cuPointerGetAttribute", OTHER),
    MEM_ALLOC_MANAGED("cuMemAllocManaged", MEMORY),
    MEM_PREFETCH_ASYNC("cuMemPrefetchAsync_v2", OTHER),
    MEM_ADVISE("cuMemAdvise_v2", OTHER),
    MEM_RANGE_GET_ATTRIBUTE("cuMemRangeGetAttribute", OTHER),
    MEM_DISCARD_BATCH_ASYNC("cuMemDiscardBatchAsync", OTHER),

    MEM_ALLOC_ASYNC("cuMemAllocAsync", MEMORY),
    MEM_ALLOC_FROM_POOL_ASYNC("cuMemAllocFromPoolAsync", MEMORY),
    MEM_FREE_ASYNC("cuMemFreeAsync", MEMORY),
    MEM_POOL_CREATE("cuMemPoolCreate", MEMORY),
    MEM_POOL_DESTROY("cuMemPoolDestroy", MEMORY),
    MEM_POOL_TRIM_TO("cuMemPoolTrimTo", MEMORY),
    MEM_POOL_SET_ATTRIBUTE("cuMemPoolSetAttribute", MEMORY),
    MEM_POOL_GET_ATTRIBUTE("cuMemPoolGetAttribute", OTHER),
    MEM_POOL_SET_ACCESS("cuMemPoolSetAccess", MEMORY),
    MEM_POOL_GET_ACCESS("cuMemPoolGetAccess", OTHER),
    DEVICE_GET_DEFAULT_MEM_POOL("cuDeviceGetDefaultMemPool", OTHER),
    DEVICE_GET_MEM_POOL("cuDeviceGetMemPool", OTHER),
    DEVICE_SET_MEM_POOL("cuDeviceSetMemPool", OTHER),

    MEM_ADDRESS_RESERVE("cuMemAddressReserve", MEMORY),
    MEM_ADDRESS_FREE("cuMemAddressFree", MEMORY),
    MEM_CREATE("cuMemCreate", MEMORY),
    MEM_RELEASE("cuMemRelease", MEMORY),
    MEM_MAP("cuMemMap", MEMORY),
    MEM_UNMAP("cuMemUnmap", MEMORY),
    MEM_SET_ACCESS("cuMemSetAccess", MEMORY),
    MEM_GET_ACCESS("cuMemGetAccess", OTHER),
    MEM_RETAIN_ALLOCATION_HANDLE("cuMemRetainAllocationHandle", MEMORY),
    MEM_GET_ALLOCATION_GRANULARITY("cuMemGetAllocationGranularity", OTHER),

    MEMCPY_HTOD_ASYNC("cuMemcpyHtoDAsync_v2", OTHER),
    MEMCPY_DTOH_ASYNC("cuMemcpyDtoHAsync_v2", OTHER),
    MEMCPY_DTOD_ASYNC("cuMemcpyDtoDAsync_v2", OTHER),
    MEMCPY_ASYNC("cuMemcpyAsync", OTHER),
    MEMCPY_PEER_ASYNC("cuMemcpyPeerAsync", OTHER),
    MEMCPY_2D_ASYNC("cuMemcpy2DAsync_v2", OTHER),
    MEMCPY_BATCH_ASYNC("cuMemcpyBatchAsync_v2", OTHER),
    MEMSET_D8_ASYNC("cuMemsetD8Async", OTHER),
    MEMSET_D16_ASYNC("cuMemsetD16Async", OTHER),
    MEMSET_D32_ASYNC("cuMemsetD32Async", OTHER),

    STREAM_CREATE("cuStreamCreate", STREAM),
    STREAM_CREATE_WITH_PRIORITY("cuStreamCreateWithPriority", STREAM),
    STREAM_DESTROY("cuStreamDestroy_v2", STREAM),
    STREAM_SYNCHRONIZE("cuStreamSynchronize", STREAM),
    STREAM_QUERY("cuStreamQuery", STREAM),
    STREAM_WAIT_EVENT("cuStreamWaitEvent", STREAM),
    STREAM_GET_ID("cuStreamGetId", STREAM),
    STREAM_GET_FLAGS("cuStreamGetFlags", STREAM),
    LAUNCH_HOST_FUNC("cuLaunchHostFunc", STREAM),
    CONTEXT_RECORD_EVENT("cuCtxRecordEvent", STREAM),
    CONTEXT_GET_STREAM_PRIORITY_RANGE("cuCtxGetStreamPriorityRange", OTHER),

    EVENT_CREATE("cuEventCreate", STREAM),
    EVENT_RECORD("cuEventRecord", STREAM),
    EVENT_QUERY("cuEventQuery", STREAM),
    EVENT_SYNCHRONIZE("cuEventSynchronize", STREAM),
    EVENT_ELAPSED_TIME("cuEventElapsedTime", STREAM),
    EVENT_DESTROY("cuEventDestroy_v2", STREAM),

    STREAM_BEGIN_CAPTURE("cuStreamBeginCapture_v2", STREAM),
    STREAM_END_CAPTURE("cuStreamEndCapture", STREAM),
    STREAM_IS_CAPTURING("cuStreamIsCapturing", OTHER),
    STREAM_GET_CAPTURE_INFO("cuStreamGetCaptureInfo_v3", OTHER),
    THREAD_EXCHANGE_CAPTURE_MODE("cuThreadExchangeStreamCaptureMode", OTHER),
    GRAPH_CREATE("cuGraphCreate", OTHER),
    GRAPH_ADD_MEM_ALLOC_NODE("cuGraphAddMemAllocNode", MEMORY),
    GRAPH_ADD_MEM_FREE_NODE("cuGraphAddMemFreeNode", MEMORY),
    GRAPH_ADD_MEMSET_NODE("cuGraphAddMemsetNode", OTHER),
    GRAPH_ADD_EMPTY_NODE("cuGraphAddEmptyNode", OTHER),
    GRAPH_GET_NODES("cuGraphGetNodes", OTHER),
    GRAPH_NODE_GET_DEPENDENCIES("cuGraphNodeGetDependencies_v2", OTHER),
    USER_OBJECT_CREATE("cuUserObjectCreate", OTHER),
    USER_OBJECT_RELEASE("cuUserObjectRelease", OTHER),
    GRAPH_RETAIN_USER_OBJECT("cuGraphRetainUserObject", OTHER),
    GRAPH_INSTANTIATE("cuGraphInstantiateWithFlags", OTHER),
    GRAPH_EXEC_UPDATE("cuGraphExecUpdate_v2", OTHER),
    GRAPH_LAUNCH("cuGraphLaunch", STREAM),
    GRAPH_EXEC_DESTROY("cuGraphExecDestroy", OTHER),
    GRAPH_DESTROY("cuGraphDestroy", OTHER),
    DEVICE_GET_GRAPH_MEM_ATTRIBUTE("cuDeviceGetGraphMemAttribute", OTHER),
    DEVICE_SET_GRAPH_MEM_ATTRIBUTE("cuDeviceSetGraphMemAttribute", OTHER),
    DEVICE_GRAPH_MEM_TRIM("cuDeviceGraphMemTrim", MEMORY),

    MODULE_LOAD_DATA("cuModuleLoadData", OTHER),
    MODULE_UNLOAD("cuModuleUnload", OTHER),
    MODULE_GET_FUNCTION("cuModuleGetFunction", OTHER),
    LAUNCH_KERNEL("cuLaunchKernel", OTHER),

    DEVICE_CAN_ACCESS_PEER("cuDeviceCanAccessPeer", OTHER),
    CONTEXT_ENABLE_PEER_ACCESS("cuCtxEnablePeerAccess", MEMORY),
    CONTEXT_DISABLE_PEER_ACCESS("cuCtxDisablePeerAccess", MEMORY),

    MEM_POOL_EXPORT("cuMemPoolExportToShareableHandle", MEMORY),
    MEM_POOL_IMPORT("cuMemPoolImportFromShareableHandle", MEMORY),
    MEM_POOL_EXPORT_POINTER("cuMemPoolExportPointer", MEMORY),
    MEM_POOL_IMPORT_POINTER("cuMemPoolImportPointer", MEMORY),
    IPC_GET_EVENT_HANDLE("cuIpcGetEventHandle", STREAM),
    IPC_OPEN_EVENT_HANDLE("cuIpcOpenEventHandle", STREAM),
    IPC_GET_MEM_HANDLE("cuIpcGetMemHandle", MEMORY);

    /// The kinds of calls that [CallCounts] adds up.
    public enum Kind {
        /// The call allocates, frees, maps or shares memory.
        MEMORY,
        /// The call orders work: streams and events.
        STREAM,
        /// Any other call: a query, a copy, a launch, or a setup.
        OTHER
    }

    private final String symbol;
    private final Kind kind;

    DriverCall(String symbol, Kind kind) {
        this.symbol = symbol;
        this.kind = kind;
    }

    /// Returns the symbol to look up in `libcuda.so.1`.
    public String symbol() {
        return symbol;
    }

    /// Returns the kind under which the call is counted.
    public Kind kind() {
        return kind;
    }
}
