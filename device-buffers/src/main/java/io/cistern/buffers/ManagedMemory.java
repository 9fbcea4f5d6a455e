package io.cistern.buffers;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.library.NativeCode;
import java.lang.foreign.MemorySegment;

/// Says where managed memory is to be, and how it is going to be used: of buffers from the allocator `managed`,
/// from
/// `caching:source=managed`, or from `async:location=managed`.
///
/// ```java
/// ManagedMemory.prefetch(weights, MemoryLocation.device(0), stream);      // before the kernel: no page
/// faults in it ManagedMemory.advise(table, MemoryAdvice.SET_READ_MOSTLY, MemoryLocation.device(0));
/// ```
///
/// The driver moves and remembers whole pages. So what is said of a small buffer holds for its neighbours as
/// well; and advice stays with the addresses after the buffer is closed, for whichever gets them next, until
/// it is unset. To keep it to yourself, open a pool of your own.
///
/// **Threads.** Any thread may call any method at any time.
public final class ManagedMemory {
    private ManagedMemory() {}

    /// Returns whether a buffer is of managed memory.
    ///
    /// @throws IllegalStateException if it is closed
    public static boolean isManaged(DeviceBuffer buffer) {
        long address = buffer.address();
        try {
            return address != 0
                    && buffer.memory()
                                    .driver()
                                    .memory()
                                    .attribute(buffer.device(), PointerAttribute.IS_MANAGED, address)
                            != 0;
        } catch (CudaException unknown) {
            return false;
        }
    }

    /// Moves a buffer to a place in the order of a stream, so that its next use there finds it. What has no
    /// room on a device stays where it is, or takes the room of other managed memory.
    ///
    /// @param target a device, [the host][MemoryLocation#host()], or one of its NUMA nodes
    /// @param stream a stream of the buffer's device
    /// @throws IllegalArgumentException if the buffer is not managed
    /// @throws IllegalStateException if the buffer is closed
    /// @throws CudaException if the driver refuses; one that is older than CUDA 12.2 always does
    public static void prefetch(DeviceBuffer buffer, MemoryLocation target, long stream) {
        requireManaged(buffer);
        if (buffer.byteSize() > 0) {
            long address = buffer.addressOn(stream);
            buffer.memory()
                    .driver()
                    .unifiedMemory()
                    .prefetch(buffer.device(), address, buffer.byteSize(), target, stream);
        }
    }

    /// Tells the driver how a buffer is going to be used, from now on and by whatever is in its pages.
    ///
    /// @param place whom the advice is about; of no meaning where [MemoryAdvice] says nothing of a place
    /// @throws IllegalArgumentException if the buffer is not managed
    /// @throws IllegalStateException if the buffer is closed
    /// @throws CudaException if the driver refuses: one that is older than CUDA 12.2 always, and for memory
    ///     of a pool all that were tried
    public static void advise(DeviceBuffer buffer, MemoryAdvice advice, MemoryLocation place) {
        requireManaged(buffer);
        if (buffer.byteSize() > 0) {
            buffer.memory()
                    .driver()
                    .unifiedMemory()
                    .advise(buffer.device(), buffer.address(), buffer.byteSize(), advice, place);
        }
    }

    /// Returns the buffer as the host reads and writes it. Nothing is ordered: wait for the work that uses it
    /// before, and use it only while the buffer is open, since nothing checks that.
    ///
    /// @throws IllegalArgumentException if the buffer is not managed
    /// @throws IllegalStateException if the buffer is closed
    public static MemorySegment segment(DeviceBuffer buffer) {
        requireManaged(buffer);
        return NativeCode.memory(buffer.address(), buffer.byteSize());
    }

    private static void requireManaged(DeviceBuffer buffer) {
        if (!isManaged(buffer) && buffer.byteSize() > 0) {
            throw new IllegalArgumentException(buffer + " at 0x" + Long.toHexString(buffer.address())
                    + " is not managed memory: allocate it from 'managed', 'caching:source=managed' or"
                    + " 'async:location=managed'");
        }
    }
}
