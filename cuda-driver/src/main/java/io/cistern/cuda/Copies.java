package io.cistern.cuda;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// Copies and fills memory in stream order. Sizes are in bytes; a copy or fill of zero bytes does nothing.
///
/// Host memory must be native, and stay alive until the stream has passed the copy. If it is not pinned, the
/// driver may copy before the call returns.
///
/// Host memory of a pool is passed by its address, like device memory; the driver function is then
/// `cuMemcpyAsync`. The host may also read and write such memory in place.
public interface Copies {
    /// Copies from the host to a device (`cuMemcpyHtoDAsync_v2`).
    void toDevice(int device, long target, MemorySegment source, long byteSize, long stream);

    /// Copies an array to a device. The driver reads the array in place (`cuMemcpyHtoDAsync_v2` in a critical
    /// call), and has finished with it when the call returns.
    ///
    /// **No safepoint can begin during the call.** The driver may wait for the stream, for its own staging
    /// memory, or for another thread's call. If any of these waits for Java code (a host function, or a
    /// word that a kernel polls and a thread sets), a garbage collection that is due stops that code, and
    /// the program hangs forever. Use this only if no device ever waits for Java code.
    ///
    /// @param array heap memory that no other thread changes until the call returns
    void arrayToDevice(int device, long target, MemorySegment array, long stream);

    /// Copies from a device to the host (`cuMemcpyDtoHAsync_v2`).
    void toHost(int device, MemorySegment target, long source, long byteSize, long stream);

    /// Copies within a device, or between devices that can access each other (`cuMemcpyDtoDAsync_v2`).
    void onDevice(int device, long target, long source, long byteSize, long stream);

    /// Copies between devices (`cuMemcpyPeerAsync`); `stream` belongs to `sourceDevice`.
    void betweenDevices(int targetDevice, long target, int sourceDevice, long source, long byteSize, long stream);

    /// Copies rows of bytes at fixed distances, such as part of an image (`cuMemcpy2DAsync_v2`). Each side is
    /// the address of memory of the device or of pinned host memory.
    ///
    /// @param targetPitch bytes from the beginning of a target row to the beginning of the next, at least
    ///     `rowBytes`
    /// @param sourcePitch bytes from the beginning of a source row to the beginning of the next, at least
    ///     `rowBytes`
    /// @param rowBytes bytes of a row
    /// @param rows number of rows
    void rows(
            int device,
            long target,
            long targetPitch,
            long source,
            long sourcePitch,
            long rowBytes,
            long rows,
            long stream);

    /// One copy of a [batch][#batch].
    ///
    /// @param target device memory, or pinned host memory
    /// @param source device memory, or pinned host memory
    /// @param byteSize more than 0
    record Piece(long target, long source, long byteSize) {}

    /// Returns whether the driver supports [#batch], which CUDA 13.0 introduced.
    boolean takesBatches();

    /// Makes several copies, in stream order as a whole and in any order among themselves
    /// (`cuMemcpyBatchAsync_v2`). The stream must not be captured.
    ///
    /// @param pieces one or more; no target overlaps another piece
    /// @param stream not a default stream
    /// @throws CudaException [CudaResult#NOT_SUPPORTED] from a driver that [lacks][#takesBatches] the call,
    ///     [CudaResult#INVALID_VALUE] for a default stream
    void batch(int device, List<Piece> pieces, long stream);

    /// Sets `byteSize` bytes at `target` to `value` (`cuMemsetD8Async`).
    void fillBytes(int device, long target, byte value, long byteSize, long stream);

    /// Sets `count` 16-bit words at `target` to `value` (`cuMemsetD16Async`); `target` must be a multiple
    /// of 2.
    void fillShorts(int device, long target, short value, long count, long stream);

    /// Sets `count` 32-bit words at `target` to `value` (`cuMemsetD32Async`); `target` must be a multiple
    /// of 4.
    void fillWords(int device, long target, int value, long count, long stream);
}
