package io.cistern.buffers;

import io.cistern.CudaStream;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.RangeAttributes;
import io.cistern.cuda.UnifiedMemory;
import java.util.List;
import java.util.Optional;

/// Prefetches managed memory, discards its contents, and advises the driver where the memory should be
/// and how it will be used. Managed buffers come from the allocator `managed`, from
/// `caching:source=managed`, or from `async:location=managed`.
///
/// ```java
/// ManagedMemory.prefetch(weights, MemoryLocation.device(0), stream);  // before the kernel: no page faults in it
/// ManagedMemory.advise(table, MemoryAdvice.SET_READ_MOSTLY, MemoryLocation.device(0));
/// ```
///
/// The driver moves whole pages and keeps advice for whole pages. So advice about a small buffer also holds
/// for its neighbours. Advice stays with the addresses after the buffer is closed, and applies to the next
/// buffer there until it is unset. If you allocate the advised buffers from a Cistern pool of their own,
/// the advice affects no other buffers.
///
/// **Threads.** Any thread may call any method at any time.
public final class ManagedMemory {
    /// The driver's number for host memory.
    private static final long ON_HOST = 1;

    /// A multiple of every host's page size.
    private static final long PAGE_BYTES = 64 << 10;

    private ManagedMemory() {}

    /// Returns whether a buffer is in managed memory; false if the driver does not know its address.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public static boolean isManaged(DeviceBuffer buffer) {
        return buffer.address() != 0 && attribute(buffer, PointerAttribute.IS_MANAGED) != 0;
    }

    /// Prefetches a buffer to a location in stream order, so that the buffer's next use there causes no
    /// page faults. Pages for which the device has no room stay where they are, or displace other
    /// managed memory.
    ///
    /// @param target a device, [the host][MemoryLocation#host()], or one of the host's NUMA nodes
    /// @param stream a stream of the buffer's device
    /// @throws IllegalArgumentException if the buffer is not managed
    /// @throws IllegalStateException if the buffer is closed, or the stream is being captured
    /// @throws CudaException if the driver refuses; a driver older than CUDA 12.2 always refuses
    public static void prefetch(DeviceBuffer buffer, MemoryLocation target, long stream) {
        requireManaged(buffer);
        CaptureRules.requireNoMove(buffer, stream);
        if (buffer.byteSize() > 0) {
            long address = buffer.addressOn(stream);
            buffer.memory()
                    .driver()
                    .unifiedMemory()
                    .prefetch(buffer.device(), address, buffer.byteSize(), target, stream);
        }
    }

    /// Prefetches a buffer in stream order: see [#prefetch(DeviceBuffer, MemoryLocation, long)].
    public static void prefetch(DeviceBuffer buffer, MemoryLocation target, CudaStream stream) {
        prefetch(buffer, target, stream.handle());
    }

    /// Prefetches several buffers in stream order, as [#prefetch(DeviceBuffer, MemoryLocation, long)]
    /// does with one. All buffers are checked before the first is prefetched.
    ///
    /// @throws IllegalArgumentException if a buffer is not managed
    /// @throws IllegalStateException if a buffer or the stream is closed, or the stream is being captured
    /// @throws CudaException if the driver refuses; some of the buffers may have been prefetched then
    public static void prefetch(List<DeviceBuffer> buffers, MemoryLocation target, CudaStream stream) {
        buffers.forEach(ManagedMemory::requireManaged);
        buffers.forEach(buffer -> CaptureRules.requireNoMove(buffer, stream.handle()));
        buffers.forEach(buffer -> prefetch(buffer, target, stream));
    }

    /// Advises the driver how a buffer will be used. The advice holds from now on, for everything in the
    /// buffer's pages.
    ///
    /// @param place the location that the advice is about; ignored by advice that concerns no location,
    ///     such as [MemoryAdvice#SET_READ_MOSTLY]
    /// @throws IllegalArgumentException if the buffer is not managed
    /// @throws IllegalStateException if the buffer is closed
    /// @throws CudaException if the driver refuses. A driver older than CUDA 12.2 always refuses. Every
    ///     driver tested refuses advice for memory of a driver's pool (`async:location=managed`)
    public static void advise(DeviceBuffer buffer, MemoryAdvice advice, MemoryLocation place) {
        requireManaged(buffer);
        if (buffer.byteSize() > 0) {
            buffer.memory()
                    .driver()
                    .unifiedMemory()
                    .advise(buffer.device(), buffer.address(), buffer.byteSize(), advice, place);
        }
    }

    /// Returns the advice that holds for every page of a buffer, and the location to which all of them
    /// were last prefetched.
    ///
    /// @return no advice and no prefetch for a buffer of 0 bytes
    /// @throws IllegalArgumentException if the buffer is not managed
    /// @throws IllegalStateException if the buffer is closed
    /// @throws CudaException if the driver refuses; a driver older than CUDA 12.2 always refuses
    public static RangeAttributes attributes(DeviceBuffer buffer) {
        requireManaged(buffer);
        return buffer.byteSize() == 0
                ? new RangeAttributes(false, Optional.empty(), List.of(), Optional.empty())
                : buffer.memory()
                        .driver()
                        .unifiedMemory()
                        .attributes(buffer.device(), buffer.address(), buffer.byteSize());
    }

    /// Discards a buffer's contents in stream order, and places the buffer on its device, so that the
    /// next kernel writes it there and the driver does not move bytes that are no longer needed. Reads
    /// before the next write give undefined bytes.
    ///
    /// Only whole pages of 64 KiB that lie inside the buffer are discarded, since neighbours may use the
    /// rest of its first and last page. So a small buffer may keep its contents.
    ///
    /// @param stream a stream of the buffer's device, not the legacy default stream
    /// @throws IllegalArgumentException if the buffer is not managed
    /// @throws IllegalStateException if the buffer is closed, or the stream is being captured
    /// @throws CudaException if the driver refuses. A driver older than CUDA 13.0 always refuses. NVIDIA
    ///     does not document whether memory of a driver's pool (`async:location=managed`) can be
    ///     discarded
    public static void discard(DeviceBuffer buffer, long stream) {
        requireManaged(buffer);
        CaptureRules.requireNoMove(buffer, stream);
        long address = buffer.addressOn(stream);
        long start = (address + PAGE_BYTES - 1) & -PAGE_BYTES;
        long end = (address + buffer.byteSize()) & -PAGE_BYTES;
        if (start < end) {
            UnifiedMemory driver = buffer.memory().driver().unifiedMemory();
            driver.discard(buffer.device(), start, end - start, stream);
            driver.prefetch(buffer.device(), start, end - start, MemoryLocation.device(buffer.device()), stream);
        }
    }

    /// Discards a buffer's contents in stream order: see [#discard(DeviceBuffer, long)].
    public static void discard(DeviceBuffer buffer, CudaStream stream) {
        discard(buffer, stream.handle());
    }

    /// Returns whether the host reaches a buffer at its address.
    static boolean isOnHost(DeviceBuffer buffer) {
        return isManaged(buffer) || attribute(buffer, PointerAttribute.MEMORY_TYPE) == ON_HOST;
    }

    private static long attribute(DeviceBuffer buffer, PointerAttribute attribute) {
        try {
            return buffer.memory().driver().memory().attribute(buffer.device(), attribute, buffer.address());
        } catch (CudaException unknown) {
            return 0;
        }
    }

    private static void requireManaged(DeviceBuffer buffer) {
        if (!isManaged(buffer) && buffer.byteSize() > 0) {
            throw new IllegalArgumentException(buffer + " at 0x" + Long.toHexString(buffer.address())
                    + " is not managed memory: allocate it from 'managed', 'caching:source=managed' or"
                    + " 'async:location=managed'");
        }
    }
}
