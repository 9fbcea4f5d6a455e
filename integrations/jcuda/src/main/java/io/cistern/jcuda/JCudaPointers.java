package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUstream;

/// Converts device memory to JCuda's pointers and back.
///
/// ```java
/// try (DeviceBuffer x = DeviceBuffer.allocate(bytes, stream)) {
///     JCublas2.cublasSscal(handle, n, alpha, JCudaPointers.of(x), 1);
/// }
/// ```
///
/// A pointer does not keep its buffer open or reachable. Nothing here needs JCuda's native libraries,
/// or a GPU.
///
/// **Threads.** Any thread may call any method at any time.
public final class JCudaPointers {
    private static final CUdeviceptr NULL = new CUdeviceptr();

    private JCudaPointers() {}

    /// Returns a pointer to a buffer's first byte: a `CUdeviceptr` for JCuda's driver API, which is also a
    /// `Pointer` for its runtime API and libraries.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public static CUdeviceptr of(DeviceBuffer buffer) {
        return of(buffer.address());
    }

    /// Returns a pointer to an address of device memory.
    public static CUdeviceptr of(long address) {
        return NULL.withByteOffset(address);
    }

    /// Returns a pointer to pinned memory, for the host's side of JCuda's copies.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public static Pointer of(PinnedBuffer buffer) {
        return of(buffer.segment().address());
    }

    /// Returns the address that a pointer refers to, in device memory or in pinned memory that JCuda
    /// allocated.
    ///
    /// @throws IllegalArgumentException if `pointer` points to a Java array or buffer, which has no
    ///     fixed address
    public static long address(Pointer pointer) {
        return PointerParts.address(pointer);
    }

    /// Returns a buffer over memory that JCuda allocated and will free. Cistern meters the memory until the
    /// buffer is closed; the close frees nothing: see [DeviceBuffer#ofForeign]. Close the buffer before
    /// JCuda frees the memory.
    ///
    /// @param pointer the pointer that `cuMemAlloc` or `cudaMalloc` wrote
    /// @param byteSize the length of the allocation in bytes
    /// @param device the device of the memory
    /// @param stream the stream on which the memory is used first
    /// @throws IllegalArgumentException if the pointer can't be the beginning of an allocation, or the
    ///     memory is already registered
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if a limit is reached
    public static DeviceBuffer foreign(
            DeviceMemory memory, Pointer pointer, long byteSize, int device, CUstream stream) {
        return DeviceBuffer.ofForeign(memory, address(pointer), byteSize, device, JCudaStreams.handle(stream));
    }
}
