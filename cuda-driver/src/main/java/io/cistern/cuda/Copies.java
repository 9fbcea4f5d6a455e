package io.cistern.cuda;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// Copies and fills, in stream order. Zero bytes do nothing.
///
/// Host memory must be native and stay alive until the stream has passed the copy; from memory that is not pinned
/// the driver may copy before the call returns.
public interface Copies {
    /// Copies from the host to a device (`cuMemcpyHtoDAsync_v2`).
    void toDevice(int device, long target, MemorySegment source, long byteSize, long stream);

    /// Copies an array to a device: the driver reads it where it is (`cuMemcpyHtoDAsync_v2` in a critical call), and is
    /// done with it on return.
    ///
    /// **No safepoint begins meanwhile.** The driver may wait for the stream, for memory that it stages in, or for
    /// another thread's call. If any of that waits for Java code (a host function, a word that a kernel polls and a
    /// thread sets), a garbage collection in between stops that code, and the program stands still for good. For
    /// programs in which no device waits for Java code.
    ///
    /// @param array on the heap; not changed by others until the call returns
    void arrayToDevice(int device, long target, MemorySegment array, long stream);

    /// Copies from a device to the host (`cuMemcpyDtoHAsync_v2`). Memory of a pool on the host is no source: kernels
    /// and the host itself read that where it is.
    void toHost(int device, MemorySegment target, long source, long byteSize, long stream);

    /// Copies within a device, or between devices that see each other (`cuMemcpyDtoDAsync_v2`).
    void onDevice(int device, long target, long source, long byteSize, long stream);

    /// Copies between devices (`cuMemcpyPeerAsync`); `stream` belongs to `sourceDevice`.
    void betweenDevices(int targetDevice, long target, int sourceDevice, long source, long byteSize, long stream);

    /// Copies rows of bytes that lie apart, such as part of an image (`cuMemcpy2DAsync_v2`). Each side is device
    /// memory of the device or pinned host memory, by its address.
    ///
    /// @param targetPitch bytes from the beginning of a row to that of the next, at least `rowBytes`
    /// @param sourcePitch the same of the source
    /// @param rowBytes bytes of a row
    /// @param rows how many rows
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

    /// Whether the driver has [#batch]: from CUDA 13.0 on.
    boolean takesBatches();

    /// Copies that the device makes in whatever order, all of them in stream order (`cuMemcpyBatchAsync_v2`). Not
    /// while the stream is captured.
    ///
    /// @param pieces one or more; no target overlaps another piece
    /// @param stream not a default stream
    /// @throws CudaException [CudaResult#NOT_SUPPORTED] from a driver that [lacks][#takesBatches] the call,
    ///     [CudaResult#INVALID_VALUE] for a default stream
    void batch(int device, List<Piece> pieces, long stream);

    /// Sets every byte (`cuMemsetD8Async`).
    void fillBytes(int device, long target, byte value, long byteSize, long stream);

    /// Sets every 32-bit word (`cuMemsetD32Async`); `target` is a multiple of 4.
    ///
    /// @param count number of words
    void fillWords(int device, long target, int value, long count, long stream);
}
