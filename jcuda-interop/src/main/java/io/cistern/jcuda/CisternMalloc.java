package io.cistern.jcuda;

import io.cistern.Allocators;
import io.cistern.DeviceMemory;
import io.cistern.DeviceOutOfMemoryException;
import io.cistern.UnknownAddressException;
import io.cistern.cuda.Streams;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import jcuda.runtime.cudaError;

/// `cuMemAlloc`, `cuMemFree`, `cudaMalloc` and `cudaFree` with the signatures of JCuda and memory of Cistern's
/// current allocator: a program changes its imports.
///
/// ```java
/// import static jcuda.driver.JCudaDriver.*;
/// import static io.cistern.jcuda.CisternMalloc.cuMemAlloc;     // these two go before what the line above imports
/// import static io.cistern.jcuda.CisternMalloc.cuMemFree;
/// ```
///
/// **What is different.** Freeing waits for nothing. Memory is allocated and freed in the order of the legacy default
/// stream, which the streams of most programs wait for; a program whose work runs on streams that don't (those
/// created with `CU_STREAM_NON_BLOCKING`) synchronises them before it frees, as it may have counted on `cuMemFree` to
/// do, or uses [io.cistern.DeviceBuffer]s.
///
/// **Errors** are results, as JCuda gives them, whether or not JCuda's exceptions are enabled.
///
/// **Context.** Memory belongs to the device's primary context, which is that of the runtime API: see [JCudaContext].
///
/// **Threads.** Any thread may call any method at any time.
public final class CisternMalloc {
    private CisternMalloc() {}

    /// Allocates on device 0 of the process's own device memory.
    ///
    /// @return `CUDA_SUCCESS`, `CUDA_ERROR_OUT_OF_MEMORY`, or `CUDA_ERROR_INVALID_VALUE` for less than 1 byte
    public static int cuMemAlloc(CUdeviceptr pointer, long byteSize) {
        return cuMemAlloc(DeviceMemory.system(), 0, pointer, byteSize);
    }

    /// Allocates on a device of other device memory.
    ///
    /// @return as the other
    public static int cuMemAlloc(DeviceMemory memory, int device, CUdeviceptr pointer, long byteSize) {
        if (byteSize < 1) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        try {
            HandleField.set(pointer, memory.allocate(byteSize, device, Streams.LEGACY_DEFAULT));
            return CUresult.CUDA_SUCCESS;
        } catch (DeviceOutOfMemoryException outOfMemory) {
            return CUresult.CUDA_ERROR_OUT_OF_MEMORY;
        }
    }

    /// Frees what was allocated here.
    ///
    /// @return `CUDA_SUCCESS`, or `CUDA_ERROR_INVALID_VALUE` for a pointer that is not from here or was freed
    public static int cuMemFree(CUdeviceptr pointer) {
        return cuMemFree(DeviceMemory.system(), pointer);
    }

    /// Frees what was allocated of other device memory.
    ///
    /// @return as the other
    public static int cuMemFree(DeviceMemory memory, Pointer pointer) {
        try {
            memory.free(JCudaPointers.address(pointer), Streams.LEGACY_DEFAULT);
            return CUresult.CUDA_SUCCESS;
        } catch (UnknownAddressException unknown) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
    }

    /// Allocates on device 0 of the process's own device memory.
    ///
    /// @return `cudaSuccess`, `cudaErrorMemoryAllocation`, or `cudaErrorInvalidValue` for less than 0 bytes
    public static int cudaMalloc(Pointer pointer, long byteSize) {
        if (byteSize < 0) {
            return cudaError.cudaErrorInvalidValue;
        }
        try {
            HandleField.set(pointer, Allocators.allocate(byteSize, 0, Streams.LEGACY_DEFAULT));
            return cudaError.cudaSuccess;
        } catch (DeviceOutOfMemoryException outOfMemory) {
            return cudaError.cudaErrorMemoryAllocation;
        }
    }

    /// Frees what was allocated here; a pointer to nothing does nothing.
    ///
    /// @return `cudaSuccess`, or `cudaErrorInvalidValue` for a pointer that is not from here or was freed
    public static int cudaFree(Pointer pointer) {
        return cuMemFree(DeviceMemory.system(), pointer) == CUresult.CUDA_SUCCESS
                ? cudaError.cudaSuccess
                : cudaError.cudaErrorInvalidValue;
    }
}
