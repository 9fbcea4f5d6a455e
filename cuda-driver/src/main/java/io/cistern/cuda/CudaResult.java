package io.cistern.cuda;

import java.util.HashMap;
import java.util.Map;

/// The `CUresult` codes that calls for memory, streams and graphs return. The names are those of `cuda.h`
/// without the prefix `CUDA_` or `CUDA_ERROR_`.
public enum CudaResult {
    SUCCESS(0),
    INVALID_VALUE(1),
    OUT_OF_MEMORY(2),
    NOT_INITIALIZED(3),
    DEINITIALIZED(4),
    STUB_LIBRARY(34),
    DEVICE_UNAVAILABLE(46),
    NO_DEVICE(100),
    INVALID_DEVICE(101),
    INVALID_IMAGE(200),
    INVALID_CONTEXT(201),
    MAP_FAILED(205),
    UNMAP_FAILED(206),
    ALREADY_MAPPED(208),
    NOT_MAPPED(211),
    ECC_UNCORRECTABLE(214),
    PEER_ACCESS_UNSUPPORTED(217),
    INVALID_PTX(218),
    FILE_NOT_FOUND(301),
    SHARED_OBJECT_INIT_FAILED(303),
    OPERATING_SYSTEM(304),
    INVALID_HANDLE(400),
    ILLEGAL_STATE(401),
    NOT_FOUND(500),
    NOT_READY(600),
    ILLEGAL_ADDRESS(700),
    LAUNCH_OUT_OF_RESOURCES(701),
    LAUNCH_TIMEOUT(702),
    PEER_ACCESS_ALREADY_ENABLED(704),
    PEER_ACCESS_NOT_ENABLED(705),
    CONTEXT_IS_DESTROYED(709),
    HOST_MEMORY_ALREADY_REGISTERED(712),
    HOST_MEMORY_NOT_REGISTERED(713),
    LAUNCH_FAILED(719),
    NOT_PERMITTED(800),
    NOT_SUPPORTED(801),
    SYSTEM_NOT_READY(802),
    SYSTEM_DRIVER_MISMATCH(803),
    COMPAT_NOT_SUPPORTED_ON_DEVICE(804),
    STREAM_CAPTURE_UNSUPPORTED(900),
    STREAM_CAPTURE_INVALIDATED(901),
    STREAM_CAPTURE_MERGE(902),
    STREAM_CAPTURE_UNMATCHED(903),
    STREAM_CAPTURE_UNJOINED(904),
    STREAM_CAPTURE_ISOLATION(905),
    STREAM_CAPTURE_IMPLICIT(906),
    CAPTURED_EVENT(907),
    STREAM_CAPTURE_WRONG_THREAD(908),
    GRAPH_EXEC_UPDATE_FAILURE(910),
    UNKNOWN(999);

    private static final Map<Integer, CudaResult> BY_CODE = new HashMap<>();

    static {
        for (CudaResult result : values()) {
            BY_CODE.put(result.code, result);
        }
    }

    private final int code;

    CudaResult(int code) {
        this.code = code;
    }

    /// Returns the number in `cuda.h`.
    public int code() {
        return code;
    }

    /// Returns the constant for a code, or [#UNKNOWN].
    public static CudaResult of(int code) {
        return BY_CODE.getOrDefault(code, UNKNOWN);
    }

    /// Returns whether the context is unusable after this result: its memory is lost, and every later call in
    /// it fails.
    public boolean endsContext() {
        return switch (this) {
            case DEINITIALIZED,
                    CONTEXT_IS_DESTROYED,
                    ILLEGAL_ADDRESS,
                    LAUNCH_FAILED,
                    LAUNCH_TIMEOUT,
                    ECC_UNCORRECTABLE -> true;
            default -> false;
        };
    }

    /// Returns the name and number, for example `CUDA_ERROR_OUT_OF_MEMORY (2)`. Never throws.
    public static String describe(int code) {
        CudaResult result = of(code);
        if (result == SUCCESS) {
            return "CUDA_SUCCESS (0)";
        }
        return (result == UNKNOWN && code != UNKNOWN.code ? "CUresult" : "CUDA_ERROR_" + result.name()) + " (" + code
                + ")";
    }
}
