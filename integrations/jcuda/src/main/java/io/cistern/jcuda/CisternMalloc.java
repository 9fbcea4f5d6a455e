package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.buffers.internal.AllocationCalls;
import io.cistern.buffers.internal.BindingBlocks;
import io.cistern.cuda.Streams;
import java.util.Set;
import java.util.function.IntSupplier;
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

/// Functions with JCuda's signatures that allocate from Cistern's current allocator. A program only has to
/// change its imports.
///
/// ```java
/// import static jcuda.driver.JCudaDriver.*;
/// import static io.cistern.jcuda.CisternMalloc.cuMemAlloc;     // these two take precedence over the line above
/// import static io.cistern.jcuda.CisternMalloc.cuMemFree;
/// ```
///
/// **What differs from JCuda.** Freeing does not synchronise. Memory is allocated and freed in the order of
/// the legacy default stream, for which most programs' streams wait. Streams created with
/// `CU_STREAM_NON_BLOCKING` do not wait for it. A program that works on such streams must synchronise them
/// before it frees, because `cuMemFree` no longer does that for it. Or it can free with `cuMemFreeAsync`,
/// or use [io.cistern.buffers.DeviceBuffer]s.
///
/// **Device.** As with JCuda, memory comes from the device whose context is current on the calling OS thread.
/// The memory belongs to the device's primary context, which the runtime API uses too: see [JCudaContext]. A
/// program that creates a context must use [#cuCtxCreate] from here as well. While another context is current,
/// allocation fails with `CUDA_ERROR_INVALID_CONTEXT`, since that context could not use the memory. Any thread
/// may free memory, whatever device is current there.
///
/// **A failed allocation** sets the pointer to null, as in JCuda, and a successful one sets its offset to 0.
///
/// **Errors** are reported as JCuda reports them: as results, or as [jcuda.CudaException] if the program
/// called `JCudaDriver.setExceptionsEnabled(true)` (for the runtime API,
/// `JCuda.setExceptionsEnabled(true)`). Cistern's exception is then the cause of JCuda's. If CUDA has no
/// code for a failure, Cistern's exception itself is thrown.
///
/// **Memory that JCuda allocates.** For managed memory, and for memory from the program's own pools, the
/// functions here pass the call to JCuda. The functions that free recognise such memory. For host memory
/// and arrays, call JCuda's own functions.
///
/// **Threads.** Any platform thread may call any method at any time. A virtual thread may change its OS
/// thread, and with it the current context, so it must allocate with
/// [#cuMemAlloc(DeviceMemory, int, CUdeviceptr, long)]; the other functions that allocate through Cistern, and
/// `cuCtxCreate`, throw an [IllegalStateException] there.
@SuppressWarnings("exports") // JSpecify is not needed at run time
public final class CisternMalloc {
    private static final Set<Integer> ELEMENT_SIZES = Set.of(4, 8, 16);

    private CisternMalloc() {}

    private static JCudaMalloc driver() {
        return new JCudaMalloc(DeviceMemory.system(), JCudaApi.DRIVER);
    }

    private static JCudaMalloc runtime() {
        return new JCudaMalloc(DeviceMemory.system(), JCudaApi.RUNTIME);
    }

    private static int allocatedByJCuda(Pointer pointer, IntSupplier allocate) {
        PointerParts.clear(pointer);
        int result = allocate.getAsInt();
        return result == 0 ? BindingBlocks.noted(result, JCudaPointers.address(pointer)) : result;
    }

    /// @param byJCuda frees a block that JCuda allocated
    private static int free(JCudaApi api, Pointer pointer, long stream, IntSupplier byJCuda) {
        if (!PointerParts.hasAddress(pointer)) { // to a Java array or buffer
            return api.give(CUresult.CUDA_ERROR_INVALID_VALUE, null); // cudaErrorInvalidValue is the same number
        }
        long address = JCudaPointers.address(pointer);
        return BindingBlocks.has(address)
                ? BindingBlocks.free(address, byJCuda)
                : new JCudaMalloc(DeviceMemory.system(), api).free(pointer, stream);
    }

    /// Allocates from the process's own device memory, on the device of the current context.
    ///
    /// @return `CUDA_SUCCESS`; `CUDA_ERROR_OUT_OF_MEMORY`; `CUDA_ERROR_INVALID_VALUE` for less than 1 byte;
    ///     `CUDA_ERROR_INVALID_CONTEXT` if no context is current, or the current one is not a primary
    ///     context; `CUDA_ERROR_INVALID_HANDLE` if the pool of the scope is closed; or the driver's error
    public static int cuMemAlloc(CUdeviceptr pointer, long byteSize) {
        return driver().allocate(pointer, byteSize, Streams.LEGACY_DEFAULT);
    }

    /// Allocates from the given device memory on the given device, whatever context is current.
    ///
    /// @return as [#cuMemAlloc(CUdeviceptr, long)]
    /// @throws IndexOutOfBoundsException if there is no such device
    public static int cuMemAlloc(DeviceMemory memory, int device, CUdeviceptr pointer, long byteSize) {
        return new JCudaMalloc(memory, JCudaApi.DRIVER).allocateOn(device, pointer, byteSize, Streams.LEGACY_DEFAULT);
    }

    /// Allocates rows that each begin at a multiple of the pitch. The pitch is the driver's: the width,
    /// rounded up to the device's texture alignment. The first row begins at a multiple of 512 bytes, as
    /// textures need it; if the allocator is a plug-in, perhaps only at a multiple of 256.
    ///
    /// @param pitch an array of at least one element; the first receives the pitch in bytes
    /// @param elementSize 4, 8 or 16
    /// @return as [#cuMemAlloc(CUdeviceptr, long)]; `CUDA_ERROR_INVALID_VALUE` also for another element size
    public static int cuMemAllocPitch(
            CUdeviceptr pointer, long[] pitch, long widthInBytes, long height, int elementSize) {
        PointerParts.clear(pointer);
        return ELEMENT_SIZES.contains(elementSize)
                ? driver().allocateRows(pointer, pitch, widthInBytes, height, Streams.LEGACY_DEFAULT)
                : JCudaApi.DRIVER.give(CUresult.CUDA_ERROR_INVALID_VALUE, null);
    }

    /// Allocates memory from the process's own device memory, in stream order.
    ///
    /// @param stream a stream of the current context's device; null is the legacy default stream
    /// @return as [#cuMemAlloc(CUdeviceptr, long)]
    public static int cuMemAllocAsync(CUdeviceptr pointer, long byteSize, @Nullable CUstream stream) {
        return driver().allocate(pointer, byteSize, handle(stream));
    }

    /// Lets JCuda allocate managed memory, which migrates between devices and host. Cistern does not meter
    /// it. Its own allocator `managed` provides metered managed memory.
    ///
    /// @return JCuda's result
    public static int cuMemAllocManaged(CUdeviceptr pointer, long byteSize, int flags) {
        return allocatedByJCuda(pointer, () -> JCudaDriver.cuMemAllocManaged(pointer, byteSize, flags));
    }

    /// Lets JCuda allocate from a pool that the program created.
    ///
    /// @return JCuda's result
    public static int cuMemAllocFromPoolAsync(
            CUdeviceptr pointer, long byteSize, CUmemoryPool pool, @Nullable CUstream stream) {
        return allocatedByJCuda(pointer, () -> JCudaDriver.cuMemAllocFromPoolAsync(pointer, byteSize, pool, stream));
    }

    /// Frees memory allocated here. Freeing a null pointer does nothing.
    ///
    /// @return `CUDA_SUCCESS`, or `CUDA_ERROR_INVALID_VALUE` if the pointer was not allocated here,
    ///     or was already freed
    public static int cuMemFree(CUdeviceptr pointer) {
        return free(JCudaApi.DRIVER, pointer, Streams.LEGACY_DEFAULT, () -> JCudaDriver.cuMemFree(pointer));
    }

    /// Frees memory that was allocated from the given device memory.
    ///
    /// @return as [#cuMemFree(CUdeviceptr)]
    public static int cuMemFree(DeviceMemory memory, Pointer pointer) {
        return new JCudaMalloc(memory, JCudaApi.DRIVER).free(pointer, Streams.LEGACY_DEFAULT);
    }

    /// Frees memory in stream order, whichever function here allocated it.
    ///
    /// @param stream a stream of the memory's device; null is the legacy default stream
    /// @return as [#cuMemFree(CUdeviceptr)]
    public static int cuMemFreeAsync(CUdeviceptr pointer, @Nullable CUstream stream) {
        return free(JCudaApi.DRIVER, pointer, handle(stream), () -> JCudaDriver.cuMemFreeAsync(pointer, stream));
    }

    /// Makes a device's primary context, to which Cistern's memory belongs, current on the calling OS thread.
    /// JCuda's own function would create a context that can't use that memory.
    ///
    /// @param context receives the primary context
    /// @param flags hints for waiting threads; ignored here
    /// @return `CUDA_SUCCESS`, `CUDA_ERROR_INVALID_DEVICE`, or another error of the driver
    public static int cuCtxCreate(CUcontext context, int flags, CUdevice device) {
        int ordinal = (int) HandleField.of(device, "device");
        return driver().enterContext(context, ordinal);
    }

    /// Destroys a context unless it is a primary one. A primary context, to which Cistern's memory
    /// belongs, stays as it is, and the call succeeds.
    ///
    /// @return `CUDA_SUCCESS`, or JCuda's result
    public static int cuCtxDestroy(CUcontext context) {
        long handle = HandleField.of(context, "context");
        return new AllocationCalls(DeviceMemory.system(), AllocationCalls.Api.DRIVER).isPrimary(handle)
                ? CUresult.CUDA_SUCCESS
                : JCudaDriver.cuCtxDestroy(context);
    }

    /// Allocates from the process's own device memory, on the device of the current context. If no context
    /// is current, the device is 0, as in the runtime API.
    ///
    /// @return `cudaSuccess`; `cudaErrorMemoryAllocation`; `cudaErrorInvalidValue` for less than 0 bytes;
    ///     `cudaErrorDeviceUninitialized` if the current context is not a primary one;
    ///     `cudaErrorInvalidResourceHandle` if the pool of the scope is closed; or the driver's error
    public static int cudaMalloc(Pointer pointer, long byteSize) {
        return runtime().allocate(pointer, byteSize, Streams.LEGACY_DEFAULT);
    }

    /// Allocates rows that each begin at a multiple of the pitch: see [#cuMemAllocPitch].
    ///
    /// @param pitch an array of at least one element; the first receives the pitch in bytes
    /// @return as [#cudaMalloc]
    public static int cudaMallocPitch(Pointer pointer, long[] pitch, long width, long height) {
        return runtime().allocateRows(pointer, pitch, width, height, Streams.LEGACY_DEFAULT);
    }

    /// Allocates layers of rows that each begin at a multiple of the pitch: see [#cuMemAllocPitch].
    ///
    /// @param pitched receives the memory, its pitch, and width and height of the extent;
    ///     unchanged after a failure
    /// @return as [#cudaMalloc]
    public static int cudaMalloc3D(cudaPitchedPtr pitched, cudaExtent extent) {
        return runtime().allocateLayers(pitched, extent, Streams.LEGACY_DEFAULT);
    }

    /// Lets JCuda allocate managed memory: see [#cuMemAllocManaged].
    ///
    /// @return JCuda's result
    public static int cudaMallocManaged(Pointer pointer, long byteSize, int flags) {
        return allocatedByJCuda(pointer, () -> JCuda.cudaMallocManaged(pointer, byteSize, flags));
    }

    /// Allocates memory in stream order. JCuda 12.6.0 lacks this CUDA function.
    ///
    /// @param stream a stream of the current device; null is the legacy default stream
    /// @return as [#cudaMalloc]
    public static int cudaMallocAsync(Pointer pointer, long byteSize, @Nullable cudaStream_t stream) {
        return runtime().allocate(pointer, byteSize, handle(stream));
    }

    /// Frees memory allocated here. Freeing a null pointer does nothing.
    ///
    /// @return `cudaSuccess`, or `cudaErrorInvalidValue` if the pointer was not allocated here,
    ///     or was already freed
    public static int cudaFree(Pointer pointer) {
        return free(JCudaApi.RUNTIME, pointer, Streams.LEGACY_DEFAULT, () -> JCuda.cudaFree(pointer));
    }

    /// Frees memory in stream order, whichever function here allocated it. Freeing managed memory waits
    /// for the whole device, as with [#cudaFree].
    ///
    /// @param stream a stream of the memory's device; null is the legacy default stream
    /// @return as [#cudaFree]
    public static int cudaFreeAsync(Pointer pointer, @Nullable cudaStream_t stream) {
        return free(JCudaApi.RUNTIME, pointer, handle(stream), () -> JCuda.cudaFree(pointer));
    }

    private static long handle(@Nullable CUstream stream) {
        return stream == null ? Streams.LEGACY_DEFAULT : JCudaStreams.handle(stream);
    }

    private static long handle(@Nullable cudaStream_t stream) {
        return stream == null ? Streams.LEGACY_DEFAULT : HandleField.of(stream, "stream");
    }
}
