package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUstream;

/// Device memory to and from JCuda's pointers.
///
/// ```java
/// try (DeviceBuffer x = DeviceBuffer.allocate(bytes, stream)) {
///     JCublas2.cublasSscal(handle, n, alpha, JCudaPointers.of(x), 1);
/// }
/// ```
///
/// A pointer does not keep its buffer open or reachable. Nothing here needs JCuda's native parts, or a GPU.
///
/// **Threads.** Any thread may call any method at any time.
public final class JCudaPointers {
    private static final CUdeviceptr NULL = new CUdeviceptr();

    private JCudaPointers() {}

    /// A pointer to a buffer's first byte: a `CUdeviceptr` for JCuda's driver API, and a `Pointer` for its runtime
    /// API and libraries.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public static CUdeviceptr of(DeviceBuffer buffer) {
        return of(buffer.address());
    }

    /// A pointer to an address of device memory.
    public static CUdeviceptr of(long address) {
        return NULL.withByteOffset(address);
    }

    /// A pointer to pinned memory, as JCuda's copies take it for the host's side.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public static Pointer of(PinnedBuffer buffer) {
        return of(buffer.segment().address());
    }

    /// The address that a pointer stands for: of device memory, or of pinned memory that JCuda allocated.
    ///
    /// @throws IllegalArgumentException if it points to a Java array or buffer, which have no lasting address
    public static long address(Pointer pointer) {
        return PointerParts.address(pointer);
    }

    /// A buffer for memory that JCuda allocated and will free. It is metered until it is closed, which frees
    /// nothing: see [DeviceBuffer#ofForeign]. Close it before JCuda frees the memory.
    ///
    /// @param pointer what `cuMemAlloc` or `cudaMalloc` wrote
    /// @param byteSize the length of the allocation
    /// @param device the device it lies on
    /// @param stream the stream on which it is used
    /// @throws IllegalArgumentException if it is no beginning of an allocation, or is registered already
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if a limit is reached
    public static DeviceBuffer foreign(
            DeviceMemory memory, Pointer pointer, long byteSize, int device, CUstream stream) {
        return DeviceBuffer.ofForeign(memory, address(pointer), byteSize, device, JCudaStreams.handle(stream));
    }
}
