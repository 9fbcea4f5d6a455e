package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.hazards.StreamHazards;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUfunction;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/// Functions with JCuda's signatures that use device memory, or order work on it. Each makes JCuda's call
/// and, if `cistern.check=streams` is set, reports it to
/// [the check for races][io.cistern.hazards.StreamHazards]. A program only has to change its imports.
///
/// **Coverage.** For copies and fills, the check sees all bytes. For a kernel, it sees the first byte of each pointer,
/// and of each `long` that is an address; these bytes count as written unless [#readOnly] marks the argument. It does
/// not see kernel arguments in `extra`, work that a stream captures, or graphs. Streams count as streams of the current
/// context's device. Copies, fills and launches that JCuda refuses count as made.
///
/// **Results** are JCuda's. With `cistern.hazards=throw`, a race throws a [io.cistern.hazards.StreamHazardException],
/// and the call is not made.
///
/// **Threads.** Any platform thread may call any method at any time.
@SuppressWarnings("exports") // JSpecify is not needed at run time
public final class CisternCalls {
    private static final boolean IS_CHECKED = StreamHazards.isSet();

    private CisternCalls() {}

    private static JCudaUses uses() {
        return IS_CHECKED ? JCudaUses.of(DeviceMemory.system()) : JCudaUses.NONE;
    }

    /// Marks a kernel argument as one that the kernel only reads: `Pointer.to(readOnly(input))`.
    public static Pointer readOnly(CUdeviceptr pointer) {
        return new JCudaUses.ReadOnly(pointer);
    }

    /// Copies host memory to the device, in stream order.
    public static int cuMemcpyHtoDAsync(CUdeviceptr target, Pointer source, long byteSize, @Nullable CUstream stream) {
        uses().copies(stream, source, target, byteSize);
        return JCudaDriver.cuMemcpyHtoDAsync(target, source, byteSize, stream);
    }

    /// Copies host memory to the device, in the order of the legacy default stream.
    public static int cuMemcpyHtoD(CUdeviceptr target, Pointer source, long byteSize) {
        uses().copies(null, source, target, byteSize);
        return uses().untilCopied(source, () -> JCudaDriver.cuMemcpyHtoD(target, source, byteSize));
    }

    /// Copies device memory to the host, in stream order.
    public static int cuMemcpyDtoHAsync(Pointer target, CUdeviceptr source, long byteSize, @Nullable CUstream stream) {
        uses().copies(stream, source, target, byteSize);
        return JCudaDriver.cuMemcpyDtoHAsync(target, source, byteSize, stream);
    }

    /// Copies device memory to the host, in the order of the legacy default stream.
    public static int cuMemcpyDtoH(Pointer target, CUdeviceptr source, long byteSize) {
        uses().copies(null, source, target, byteSize);
        return uses().untilStream(null, () -> JCudaDriver.cuMemcpyDtoH(target, source, byteSize));
    }

    /// Copies memory within a device, in stream order.
    public static int cuMemcpyDtoDAsync(
            CUdeviceptr target, CUdeviceptr source, long byteSize, @Nullable CUstream stream) {
        uses().copies(stream, source, target, byteSize);
        return JCudaDriver.cuMemcpyDtoDAsync(target, source, byteSize, stream);
    }

    /// Copies memory within a device, in the order of the legacy default stream.
    public static int cuMemcpyDtoD(CUdeviceptr target, CUdeviceptr source, long byteSize) {
        uses().copies(null, source, target, byteSize);
        return JCudaDriver.cuMemcpyDtoD(target, source, byteSize);
    }

    /// Copies between any memory of the host or a device, in stream order.
    public static int cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, long byteSize, @Nullable CUstream stream) {
        uses().copies(stream, source, target, byteSize);
        return JCudaDriver.cuMemcpyAsync(target, source, byteSize, stream);
    }

    /// Copies between any memory of the host or a device, in the order of the legacy default stream.
    public static int cuMemcpy(CUdeviceptr target, CUdeviceptr source, long byteSize) {
        uses().copies(null, source, target, byteSize);
        return JCudaDriver.cuMemcpy(target, source, byteSize);
    }

    /// Sets each byte of a memory range to a value, in stream order.
    public static int cuMemsetD8Async(CUdeviceptr target, byte value, long count, @Nullable CUstream stream) {
        uses().writes(stream, target, count);
        return JCudaDriver.cuMemsetD8Async(target, value, count, stream);
    }

    /// Sets each byte of a memory range to a value, in the order of the legacy default stream.
    public static int cuMemsetD8(CUdeviceptr target, byte value, long count) {
        uses().writes(null, target, count);
        return JCudaDriver.cuMemsetD8(target, value, count);
    }

    /// Sets each 16-bit element of a memory range to a value, in stream order.
    public static int cuMemsetD16Async(CUdeviceptr target, short value, long count, @Nullable CUstream stream) {
        uses().writes(stream, target, 2 * count);
        return JCudaDriver.cuMemsetD16Async(target, value, count, stream);
    }

    /// Sets each 16-bit element of a memory range to a value, in the order of the legacy default stream.
    public static int cuMemsetD16(CUdeviceptr target, short value, long count) {
        uses().writes(null, target, 2 * count);
        return JCudaDriver.cuMemsetD16(target, value, count);
    }

    /// Sets each 32-bit element of a memory range to a value, in stream order.
    public static int cuMemsetD32Async(CUdeviceptr target, int value, long count, @Nullable CUstream stream) {
        uses().writes(stream, target, 4 * count);
        return JCudaDriver.cuMemsetD32Async(target, value, count, stream);
    }

    /// Sets each 32-bit element of a memory range to a value, in the order of the legacy default stream.
    public static int cuMemsetD32(CUdeviceptr target, int value, long count) {
        uses().writes(null, target, 4 * count);
        return JCudaDriver.cuMemsetD32(target, value, count);
    }

    /// Sets each byte of the rows of a pitched memory range to a value, in stream order.
    public static int cuMemsetD2D8Async(
            CUdeviceptr target, long pitch, byte value, long width, long rows, @Nullable CUstream stream) {
        uses().writesRows(stream, target, pitch, width, rows);
        return JCudaDriver.cuMemsetD2D8Async(target, pitch, value, width, rows, stream);
    }

    /// Sets each byte of the rows of a pitched memory range to a value, in the order of the legacy
    /// default stream.
    public static int cuMemsetD2D8(CUdeviceptr target, long pitch, byte value, long width, long rows) {
        uses().writesRows(null, target, pitch, width, rows);
        return JCudaDriver.cuMemsetD2D8(target, pitch, value, width, rows);
    }

    /// Sets each 16-bit element of the rows of a pitched memory range to a value, in stream order.
    public static int cuMemsetD2D16Async(
            CUdeviceptr target, long pitch, short value, long width, long rows, @Nullable CUstream stream) {
        uses().writesRows(stream, target, pitch, 2 * width, rows);
        return JCudaDriver.cuMemsetD2D16Async(target, pitch, value, width, rows, stream);
    }

    /// Sets each 16-bit element of the rows of a pitched memory range to a value, in the order of the
    /// legacy default stream.
    public static int cuMemsetD2D16(CUdeviceptr target, long pitch, short value, long width, long rows) {
        uses().writesRows(null, target, pitch, 2 * width, rows);
        return JCudaDriver.cuMemsetD2D16(target, pitch, value, width, rows);
    }

    /// Sets each 32-bit element of the rows of a pitched memory range to a value, in stream order.
    public static int cuMemsetD2D32Async(
            CUdeviceptr target, long pitch, int value, long width, long rows, @Nullable CUstream stream) {
        uses().writesRows(stream, target, pitch, 4 * width, rows);
        return JCudaDriver.cuMemsetD2D32Async(target, pitch, value, width, rows, stream);
    }

    /// Sets each 32-bit element of the rows of a pitched memory range to a value, in the order of the
    /// legacy default stream.
    public static int cuMemsetD2D32(CUdeviceptr target, long pitch, int value, long width, long rows) {
        uses().writesRows(null, target, pitch, 4 * width, rows);
        return JCudaDriver.cuMemsetD2D32(target, pitch, value, width, rows);
    }

    /// Launches a kernel.
    public static int cuLaunchKernel(
            CUfunction function,
            int gridX,
            int gridY,
            int gridZ,
            int blockX,
            int blockY,
            int blockZ,
            int sharedBytes,
            @Nullable CUstream stream,
            @Nullable Pointer parameters,
            @Nullable Pointer extra) {
        uses().launches(stream, parameters);
        return JCudaDriver.cuLaunchKernel(
                function, gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes, stream, parameters, extra);
    }

    /// Launches a cooperative kernel, whose blocks can synchronise with each other.
    public static int cuLaunchCooperativeKernel(
            CUfunction function,
            int gridX,
            int gridY,
            int gridZ,
            int blockX,
            int blockY,
            int blockZ,
            int sharedBytes,
            @Nullable CUstream stream,
            @Nullable Pointer parameters) {
        uses().launches(stream, parameters);
        return JCudaDriver.cuLaunchCooperativeKernel(
                function, gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes, stream, parameters);
    }

    /// Records an event.
    public static int cuEventRecord(CUevent event, @Nullable CUstream stream) {
        return uses().records(event, stream, () -> JCudaDriver.cuEventRecord(event, stream));
    }

    /// Makes a stream wait for an event.
    public static int cuStreamWaitEvent(@Nullable CUstream stream, CUevent event, int flags) {
        return uses().awaits(stream, event, () -> JCudaDriver.cuStreamWaitEvent(stream, event, flags));
    }

    /// Waits until the work that an event recorded has completed.
    public static int cuEventSynchronize(CUevent event) {
        return uses().untilEvent(event, () -> JCudaDriver.cuEventSynchronize(event));
    }

    /// Queries whether the work that an event recorded has completed.
    public static int cuEventQuery(CUevent event) {
        return uses().untilEvent(event, () -> JCudaDriver.cuEventQuery(event));
    }

    /// Destroys an event.
    public static int cuEventDestroy(CUevent event) {
        uses().destroys(event);
        return JCudaDriver.cuEventDestroy(event);
    }

    /// Waits until all work on a stream has completed.
    public static int cuStreamSynchronize(@Nullable CUstream stream) {
        return uses().untilStream(stream, () -> JCudaDriver.cuStreamSynchronize(stream));
    }

    /// Queries whether all work on a stream has completed.
    public static int cuStreamQuery(@Nullable CUstream stream) {
        return uses().untilStream(stream, () -> JCudaDriver.cuStreamQuery(stream));
    }

    /// Destroys a stream. Work that is already enqueued on the stream still completes.
    public static int cuStreamDestroy(CUstream stream) {
        uses().destroys(stream);
        return JCudaDriver.cuStreamDestroy(stream);
    }

    /// Waits until all work of the current context has completed.
    public static int cuCtxSynchronize() {
        return uses().untilDevice(() -> JCudaDriver.cuCtxSynchronize());
    }
}
