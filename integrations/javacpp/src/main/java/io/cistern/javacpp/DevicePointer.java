package io.cistern.javacpp;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import java.lang.ref.WeakReference;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.javacpp.Pointer;
import org.jspecify.annotations.Nullable;

/// A JavaCPP pointer to Cistern's device memory, at position 0. The presets' typed pointers can be
/// constructed from it:
///
/// ```java
/// try (DevicePointer memory = DevicePointer.allocate(4L * n, stream)) {
///     cublasSscal_v2(handle, n, two, new FloatPointer(memory), 1);
/// }                                // ends in stream order: work enqueued before may still use it
/// ```
///
/// A pointer that [#allocate] made owns its block until it is closed: directly, through a pointer made
/// from it, or by a `PointerScope`. If the garbage collector finds the pointer before it is closed, the
/// block is reused only after all work enqueued on the device by then, since the block's last use is
/// unknown. A pointer [of][#of(DeviceBuffer)] a buffer owns no block, and does not keep the buffer open
/// or reachable.
///
/// The host can't read or write through a pointer to device memory: methods of JavaCPP such as `get` and
/// `put` crash the process.
///
/// The methods of this class need neither the native libraries of JavaCPP and its presets nor a GPU: they
/// also work on a simulated one.
///
/// **Threads.** Any thread may call any method at any time.
public final class DevicePointer extends Pointer {
    private DevicePointer(long address) {
        this.address = address;
    }

    /// Creates a pointer to another pointer's memory, as `getPointer(offset)` of JavaCPP does. If the
    /// other pointer owns a block, closing either of them frees the block.
    public DevicePointer(Pointer pointer) {
        super(pointer);
    }

    /// Frees a block once.
    private record Block(DeviceMemory memory, long address, long stream, WeakReference<Pointer> pointer)
            implements Deallocator {
        /// Called for a pointer that is closed, or was found by the garbage collector, which clears references first.
        @Override
        public void deallocate() {
            if (pointer.refersTo(null)) {
                memory.moduleSupport().freeBehindAll(address);
            } else {
                memory.free(address, stream);
            }
        }
    }

    /// Allocates from the current allocator of a stream's device memory, for use on that stream.
    ///
    /// @param byteSize bytes wanted; 0 gives a null pointer
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IllegalStateException if the stream is closed
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if memory runs out or a limit is reached
    public static DevicePointer allocate(long byteSize, CudaStream stream) {
        return allocate(stream.memory(), byteSize, stream.device(), stream.handle());
    }

    /// Allocates from the current allocator of a device memory.
    ///
    /// @param byteSize bytes wanted; 0 gives a null pointer
    /// @param device the device's ordinal
    /// @param stream the stream on which the memory is first used, and in whose order it is freed
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if memory runs out or a limit is reached
    public static DevicePointer allocate(DeviceMemory memory, long byteSize, int device, long stream) {
        long address = memory.allocate(byteSize, device, stream);
        DevicePointer pointer = null;
        try {
            pointer = new DevicePointer(address);
            if (address != 0) {
                pointer.deallocator(new Block(memory, address, stream, new WeakReference<>(pointer)));
            }
            pointer.capacity(byteSize); // last: JavaCPP limits the bytes that its deallocators know to the Java heap's
            return pointer;
        } catch (Throwable failure) {
            if (pointer == null || !pointer.isNull()) { // JavaCPP deallocates a pointer that it refuses
                memory.free(address, stream);
            }
            throw failure;
        }
    }

    /// Returns a pointer to a buffer's first byte.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public static DevicePointer of(DeviceBuffer buffer) {
        return of(buffer.address(), buffer.byteSize());
    }

    /// Returns a pointer to the first byte of pinned memory, for the host's side of copies.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public static DevicePointer of(PinnedBuffer buffer) {
        return of(buffer.segment().address(), buffer.segment().byteSize());
    }

    /// Returns a pointer to an address.
    ///
    /// @param byteSize the number of bytes that may be accessed through it
    public static DevicePointer of(long address, long byteSize) {
        return new DevicePointer(address).capacity(byteSize);
    }

    /// Returns the address of a pointer's position; 0 for null.
    @SuppressWarnings("exports") // JSpecify is not needed at run time
    public static long address(@Nullable Pointer pointer) {
        if (pointer == null) {
            return 0;
        }
        return pointer.position() == 0 ? pointer.address() : pointer.address() + pointer.position() * pointer.sizeof();
    }

    /// Returns a buffer over memory that the presets allocated and will free. Cistern meters the memory
    /// until the buffer is closed; the close frees nothing: see [DeviceBuffer#ofForeign]. Close the buffer
    /// before the memory is freed.
    ///
    /// @param pointer the pointer that `cudaMalloc` wrote
    /// @param byteSize the length of the allocation in bytes
    /// @param device the device of the memory
    /// @param stream the stream on which the memory is used first
    /// @throws IllegalArgumentException if the pointer can't be the beginning of an allocation, or the
    ///     memory is already registered
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if a limit is reached
    public static DeviceBuffer foreign(
            DeviceMemory memory, Pointer pointer, long byteSize, int device, CUstream_st stream) {
        return DeviceBuffer.ofForeign(memory, address(pointer), byteSize, device, stream.address());
    }

    /// Returns 1: positions are bytes. JavaCPP's own method would return the size of an address.
    @Override
    public int sizeof() {
        return 1;
    }
}
