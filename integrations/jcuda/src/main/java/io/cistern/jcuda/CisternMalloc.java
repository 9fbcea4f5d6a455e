package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CisternException;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;

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
/// do, or uses [io.cistern.buffers.DeviceBuffer]s.
///
/// **Device.** Memory comes from the device whose context is current on the calling OS thread, as with JCuda. It
/// belongs to the device's primary context, which is that of the runtime API: see [JCudaContext]. While a context
/// that the program made itself (`cuCtxCreate`) is current, the result is `CUDA_ERROR_INVALID_CONTEXT`, since the
/// memory could not be used in it.
///
/// **Errors** are given as JCuda gives them: as results, or as [jcuda.CudaException] after
/// `JCudaDriver.setExceptionsEnabled(true)`, for the runtime API after `JCuda.setExceptionsEnabled(true)`. The
/// exception has what Cistern says of it as its cause.
///
/// **What stays JCuda's.** All other calls, also those that allocate: pitched, managed, pinned and array memory, and
/// `cuMemAllocAsync`. Their memory is freed by JCuda's own `cuMemFree` or `cudaFree`, called with the name of its
/// class; the methods here refuse it.
///
/// **Threads.** Any platform thread may call any method at any time. A virtual thread changes its OS thread, and
/// with it the current context; it allocates with the method that is given a device.
public final class CisternMalloc {
    private static final int SUCCESS = 0;
    private static final int INVALID_VALUE = CUresult.CUDA_ERROR_INVALID_VALUE; // cudaErrorInvalidValue is the same
    private static final int NO_CONTEXT = -1;

    private CisternMalloc() {}

    /// Allocates of the process's own device memory, on the device of the current context.
    ///
    /// @return `CUDA_SUCCESS`; `CUDA_ERROR_OUT_OF_MEMORY`; `CUDA_ERROR_INVALID_VALUE` for less than 1 byte;
    ///     `CUDA_ERROR_INVALID_CONTEXT` if no context is current, or one that is no primary one; or what the
    ///     driver said
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    /// @throws IllegalStateException on a virtual thread
    public static int cuMemAlloc(CUdeviceptr pointer, long byteSize) {
        return cuMemAlloc(DeviceMemory.system(), pointer, byteSize);
    }

    static int cuMemAlloc(DeviceMemory memory, CUdeviceptr pointer, long byteSize) {
        requirePlatformThread();
        try {
            int device = memory.driver().devices().currentDevice();
            return device == NO_CONTEXT
                    ? JCudaResults.ofDriver(CUresult.CUDA_ERROR_INVALID_CONTEXT, null)
                    : cuMemAlloc(memory, device, pointer, byteSize);
        } catch (CudaException failure) {
            return JCudaResults.ofDriver(failure.code(), failure);
        }
    }

    /// Allocates on a device of other device memory, whatever context is current.
    ///
    /// @return as the other
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    /// @throws IndexOutOfBoundsException if there is no such device
    public static int cuMemAlloc(DeviceMemory memory, int device, CUdeviceptr pointer, long byteSize) {
        if (byteSize < 1) {
            return JCudaResults.ofDriver(INVALID_VALUE, null);
        }
        try {
            allocate(memory, device, pointer, byteSize);
            return SUCCESS;
        } catch (CisternException failure) {
            return JCudaResults.ofDriver(codeOf(failure), failure);
        }
    }

    /// Frees what was allocated here; a pointer to nothing does nothing.
    ///
    /// @return `CUDA_SUCCESS`, or `CUDA_ERROR_INVALID_VALUE` for a pointer that is not from here or was freed
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    public static int cuMemFree(CUdeviceptr pointer) {
        return cuMemFree(DeviceMemory.system(), pointer);
    }

    /// Frees what was allocated of other device memory.
    ///
    /// @return as the other
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    public static int cuMemFree(DeviceMemory memory, Pointer pointer) {
        try {
            free(memory, pointer);
            return SUCCESS;
        } catch (CisternException failure) {
            return JCudaResults.ofDriver(codeOf(failure), failure);
        }
    }

    /// Allocates of the process's own device memory, on the device of the current context; on device 0 if no
    /// context is current, which is where the runtime API begins.
    ///
    /// @return `cudaSuccess`; `cudaErrorMemoryAllocation`; `cudaErrorInvalidValue` for less than 0 bytes;
    ///     `cudaErrorDeviceUninitialized` if the current context is no primary one; or what the driver said
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    /// @throws IllegalStateException on a virtual thread
    public static int cudaMalloc(Pointer pointer, long byteSize) {
        return cudaMalloc(DeviceMemory.system(), pointer, byteSize);
    }

    static int cudaMalloc(DeviceMemory memory, Pointer pointer, long byteSize) {
        requirePlatformThread();
        if (byteSize < 0) {
            return JCudaResults.ofRuntime(INVALID_VALUE, null);
        }
        try {
            int device = Math.max(0, memory.driver().devices().currentDevice());
            allocate(memory, device, pointer, byteSize);
            return SUCCESS;
        } catch (CisternException failure) {
            return JCudaResults.ofRuntime(codeOf(failure), failure);
        }
    }

    /// Frees what was allocated here; a pointer to nothing does nothing.
    ///
    /// @return `cudaSuccess`, or `cudaErrorInvalidValue` for a pointer that is not from here or was freed
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    public static int cudaFree(Pointer pointer) {
        return cudaFree(DeviceMemory.system(), pointer);
    }

    static int cudaFree(DeviceMemory memory, Pointer pointer) {
        try {
            free(memory, pointer);
            return SUCCESS;
        } catch (CisternException failure) {
            return JCudaResults.ofRuntime(codeOf(failure), failure);
        }
    }

    private static void allocate(DeviceMemory memory, int device, Pointer pointer, long byteSize) {
        HandleField.set(pointer, memory.allocate(byteSize, device, Streams.LEGACY_DEFAULT));
    }

    private static void free(DeviceMemory memory, Pointer pointer) {
        memory.free(JCudaPointers.address(pointer), Streams.LEGACY_DEFAULT);
    }

    /// The two APIs have the same numbers for these.
    ///
    /// @throws CisternException what has no number, as it is
    private static int codeOf(CisternException failure) {
        return switch (failure) {
            case CudaException ofDriver -> ofDriver.code();
            case DeviceOutOfMemoryException _ -> CUresult.CUDA_ERROR_OUT_OF_MEMORY;
            case UnknownAddressException _ -> INVALID_VALUE;
            default -> throw failure;
        };
    }

    private static void requirePlatformThread() {
        if (Thread.currentThread().isVirtual()) {
            throw new IllegalStateException("a virtual thread changes its OS thread, and with it the current context:"
                    + " call this from a platform thread, or name the device");
        }
    }
}
