package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.cuda.Devices;
import io.cistern.cuda.Streams;
import java.util.Set;
import java.util.stream.IntStream;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUmemoryPool;
import jcuda.driver.CUresult;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;
import jcuda.runtime.JCuda;
import jcuda.runtime.cudaExtent;
import jcuda.runtime.cudaPitchedPtr;
import jcuda.runtime.cudaStream_t;
import org.jspecify.annotations.Nullable;

/// Functions of JCuda, with its signatures, that allocate from Cistern's current allocator: a program changes
/// its imports.
///
/// ```java
/// import static jcuda.driver.JCudaDriver.*;
/// import static io.cistern.jcuda.CisternMalloc.cuMemAlloc;     // these two go before what the line above imports
/// import static io.cistern.jcuda.CisternMalloc.cuMemFree;
/// ```
///
/// **What is different.** Freeing waits for nothing. Memory is allocated and freed in the order of the legacy
/// default stream, which the streams of most programs wait for; a program whose work runs on streams that don't
/// (those created with `CU_STREAM_NON_BLOCKING`) synchronises them before it frees, as it may have counted on
/// `cuMemFree` to do, or frees with `cuMemFreeAsync`, or uses [io.cistern.buffers.DeviceBuffer]s.
///
/// **Device.** Memory comes from the device whose context is current on the calling OS thread, as with JCuda.
/// It belongs to the device's primary context, which is that of the runtime API: see [JCudaContext]. A program
/// that makes a context takes [#cuCtxCreate] from here, too. While another context is current, the result is
/// `CUDA_ERROR_INVALID_CONTEXT`, since the memory could not be used in it. Memory is freed from any thread,
/// whatever device is current there.
///
/// **Errors** are given as JCuda gives them: as results, or as [jcuda.CudaException] after
/// `JCudaDriver.setExceptionsEnabled(true)`, for the runtime API after `JCuda.setExceptionsEnabled(true)`. The
/// exception has what Cistern says of it as its cause.
///
/// **What stays JCuda's.** Managed memory and pools of the program's own: the functions here have JCuda
/// allocate, and the functions here that free know it. Host memory and arrays, which have other functions that
/// free.
///
/// **Threads.** Any platform thread may call any method at any time. A virtual thread changes its OS thread,
/// and with it the current context; it allocates with the method that is given a device.
public final class CisternMalloc {
    private static final Set<Integer> ELEMENT_SIZES = Set.of(4, 8, 16);

    private CisternMalloc() {}

    private static JCudaMalloc driver() {
        return new JCudaMalloc(DeviceMemory.system(), JCudaApi.DRIVER);
    }

    private static JCudaMalloc runtime() {
        return new JCudaMalloc(DeviceMemory.system(), JCudaApi.RUNTIME);
    }

    /// Allocates of the process's own device memory, on the device of the current context.
    ///
    /// @return `CUDA_SUCCESS`; `CUDA_ERROR_OUT_OF_MEMORY`; `CUDA_ERROR_INVALID_VALUE` for less than 1 byte;
    ///     `CUDA_ERROR_INVALID_CONTEXT` if no context is current, or one that is no primary one; or what the
    ///     driver said
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    /// @throws IllegalStateException on a virtual thread
    public static int cuMemAlloc(CUdeviceptr pointer, long byteSize) {
        return driver().allocate(pointer, byteSize, Streams.LEGACY_DEFAULT);
    }

    /// Allocates on a device of other device memory, whatever context is current.
    ///
    /// @return as the other
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    /// @throws IndexOutOfBoundsException if there is no such device
    public static int cuMemAlloc(DeviceMemory memory, int device, CUdeviceptr pointer, long byteSize) {
        return new JCudaMalloc(memory, JCudaApi.DRIVER).allocateOn(device, pointer, byteSize, Streams.LEGACY_DEFAULT);
    }

    /// Allocates rows of which each begins at a multiple of the pitch. The pitch is that of the driver. The
    /// first row begins at a multiple of 512, as textures want it, unless a plug-in allocates, which may give
    /// multiples of 256.
    ///
    /// @param pitch is given the pitch in its first element
    /// @param elementSize 4, 8 or 16
    /// @return as [#cuMemAlloc(CUdeviceptr, long)]; `CUDA_ERROR_INVALID_VALUE` also for another element size
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    /// @throws IllegalStateException on a virtual thread
    public static int cuMemAllocPitch(
            CUdeviceptr pointer, long[] pitch, long widthInBytes, long height, int elementSize) {
        return ELEMENT_SIZES.contains(elementSize)
                ? driver().allocateRows(pointer, pitch, widthInBytes, height, Streams.LEGACY_DEFAULT)
                : JCudaApi.DRIVER.give(CUresult.CUDA_ERROR_INVALID_VALUE, null);
    }

    /// Allocates in the order of a stream.
    ///
    /// @param stream one of the current context's device; null is the legacy default stream
    /// @return as [#cuMemAlloc(CUdeviceptr, long)]
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    /// @throws IllegalStateException on a virtual thread
    @SuppressWarnings("exports") // nobody needs JSpecify to run
    public static int cuMemAllocAsync(CUdeviceptr pointer, long byteSize, @Nullable CUstream stream) {
        return driver().allocate(pointer, byteSize, handle(stream));
    }

    /// Has JCuda allocate managed memory, which migrates between devices and host: no allocator of Cistern has
    /// any.
    ///
    /// @return JCuda's result
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    public static int cuMemAllocManaged(CUdeviceptr pointer, long byteSize, int flags) {
        return MadeByJCuda.noted(JCudaDriver.cuMemAllocManaged(pointer, byteSize, flags), pointer);
    }

    /// Has JCuda allocate from a pool that the program made.
    ///
    /// @return JCuda's result
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    @SuppressWarnings("exports")
    public static int cuMemAllocFromPoolAsync(
            CUdeviceptr pointer, long byteSize, CUmemoryPool pool, @Nullable CUstream stream) {
        return MadeByJCuda.noted(JCudaDriver.cuMemAllocFromPoolAsync(pointer, byteSize, pool, stream), pointer);
    }

    /// Frees what was allocated here; a pointer to nothing does nothing.
    ///
    /// @return `CUDA_SUCCESS`, or `CUDA_ERROR_INVALID_VALUE` for a pointer that is not from here or was freed
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    public static int cuMemFree(CUdeviceptr pointer) {
        return MadeByJCuda.has(pointer)
                ? MadeByJCuda.free(pointer, JCudaDriver::cuMemFree)
                : driver().free(pointer, Streams.LEGACY_DEFAULT);
    }

    /// Frees what was allocated of other device memory.
    ///
    /// @return as the other
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    public static int cuMemFree(DeviceMemory memory, Pointer pointer) {
        return new JCudaMalloc(memory, JCudaApi.DRIVER).free(pointer, Streams.LEGACY_DEFAULT);
    }

    /// Frees, in the order of a stream, what was allocated here, by any of the functions.
    ///
    /// @param stream one of the memory's device; null is the legacy default stream
    /// @return as [#cuMemFree(CUdeviceptr)]
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    @SuppressWarnings("exports")
    public static int cuMemFreeAsync(CUdeviceptr pointer, @Nullable CUstream stream) {
        return MadeByJCuda.has(pointer)
                ? MadeByJCuda.free(pointer, made -> JCudaDriver.cuMemFreeAsync(made, stream))
                : driver().free(pointer, handle(stream));
    }

    /// Makes the context to which memory belongs current on the calling OS thread: the device's primary one.
    /// JCuda's own function makes a context that has memory of its own.
    ///
    /// @param context is given the primary context
    /// @param flags are hints for waiting threads, and change nothing here
    /// @return `CUDA_SUCCESS`, `CUDA_ERROR_INVALID_DEVICE`, or what the driver said
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    /// @throws IllegalStateException on a virtual thread
    public static int cuCtxCreate(CUcontext context, int flags, CUdevice device) {
        return driver().enterContext(context, (int) HandleField.of(device));
    }

    /// Ends the program's use of a context. A primary one lives on, since memory of Cistern is in it; JCuda
    /// destroys another one.
    ///
    /// @return `CUDA_SUCCESS`, or JCuda's result
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    public static int cuCtxDestroy(CUcontext context) {
        return isPrimary(DeviceMemory.system().driver().devices(), HandleField.of(context))
                ? CUresult.CUDA_SUCCESS
                : JCudaDriver.cuCtxDestroy(context);
    }

    private static boolean isPrimary(Devices devices, long context) {
        return IntStream.range(0, devices.count())
                .anyMatch(device -> devices.isUsed(device) && devices.primaryContext(device) == context);
    }

    /// Allocates of the process's own device memory, on the device of the current context; on device 0 if no
    /// context is current, which is where the runtime API begins.
    ///
    /// @return `cudaSuccess`; `cudaErrorMemoryAllocation`; `cudaErrorInvalidValue` for less than 0 bytes;
    ///     `cudaErrorDeviceUninitialized` if the current context is no primary one; or what the driver said
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    /// @throws IllegalStateException on a virtual thread
    public static int cudaMalloc(Pointer pointer, long byteSize) {
        return runtime().allocate(pointer, byteSize, Streams.LEGACY_DEFAULT);
    }

    /// Allocates rows of which each begins at a multiple of the pitch: see [#cuMemAllocPitch].
    ///
    /// @param pitch is given the pitch in its first element
    /// @return as [#cudaMalloc]
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    /// @throws IllegalStateException on a virtual thread
    public static int cudaMallocPitch(Pointer pointer, long[] pitch, long width, long height) {
        return runtime().allocateRows(pointer, pitch, width, height, Streams.LEGACY_DEFAULT);
    }

    /// Allocates layers of rows of which each begins at a multiple of the pitch: see [#cuMemAllocPitch].
    ///
    /// @param pitched is given the memory, its pitch, and width and height of the extent; nothing on a failure
    /// @return as [#cudaMalloc]
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    /// @throws IllegalStateException on a virtual thread
    public static int cudaMalloc3D(cudaPitchedPtr pitched, cudaExtent extent) {
        return runtime().allocateLayers(pitched, extent, Streams.LEGACY_DEFAULT);
    }

    /// Has JCuda allocate managed memory: see [#cuMemAllocManaged].
    ///
    /// @return JCuda's result
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    public static int cudaMallocManaged(Pointer pointer, long byteSize, int flags) {
        return MadeByJCuda.noted(JCuda.cudaMallocManaged(pointer, byteSize, flags), pointer);
    }

    /// Allocates in the order of a stream, as the CUDA function that JCuda 12.6.0 has not.
    ///
    /// @param stream one of the current device; null is the legacy default stream
    /// @return as [#cudaMalloc]
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    /// @throws IllegalStateException on a virtual thread
    @SuppressWarnings("exports")
    public static int cudaMallocAsync(Pointer pointer, long byteSize, @Nullable cudaStream_t stream) {
        return runtime().allocate(pointer, byteSize, handle(stream));
    }

    /// Frees what was allocated here; a pointer to nothing does nothing.
    ///
    /// @return `cudaSuccess`, or `cudaErrorInvalidValue` for a pointer that is not from here or was freed
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    public static int cudaFree(Pointer pointer) {
        return MadeByJCuda.has(pointer)
                ? MadeByJCuda.free(pointer, JCuda::cudaFree)
                : runtime().free(pointer, Streams.LEGACY_DEFAULT);
    }

    /// Frees, in the order of a stream, what was allocated here, by any of the functions. Managed memory waits
    /// for the whole device, as with [#cudaFree].
    ///
    /// @param stream one of the memory's device; null is the legacy default stream
    /// @return as [#cudaFree]
    /// @throws jcuda.CudaException in place of a failure, if the program enabled JCuda's exceptions
    @SuppressWarnings("exports")
    public static int cudaFreeAsync(Pointer pointer, @Nullable cudaStream_t stream) {
        return MadeByJCuda.has(pointer)
                ? MadeByJCuda.free(pointer, JCuda::cudaFree)
                : runtime().free(pointer, handle(stream));
    }

    private static long handle(@Nullable CUstream stream) {
        return stream == null ? Streams.LEGACY_DEFAULT : JCudaStreams.handle(stream);
    }

    private static long handle(@Nullable cudaStream_t stream) {
        return stream == null ? Streams.LEGACY_DEFAULT : HandleField.of(stream);
    }
}
