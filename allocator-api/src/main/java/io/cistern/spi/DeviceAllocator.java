package io.cistern.spi;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.Optional;
import java.util.OptionalLong;

/// Hands out device memory in stream order. **This is what a plug-in implements**: two methods and an
/// [AllocatorProvider]; everything else has a default that is right for an allocator that keeps no freed memory.
/// An allocator that keeps some, even if only because the driver refuses to take it back, also implements
/// [#trim], [#streamClosing] and [#close].
///
/// Statistics, limits, ownership, history and leak reports are not the plug-in's business. The framework keeps
/// them for every allocator, at its own boundary.
///
/// ```java
/// final class KeepingAllocator implements DeviceAllocator {
///     private final RangeSource source;               // context.ranges("linear")
///     private final StreamOrder order;                // context.streams()
///
///     public long allocate(long byteSize, int device, long stream) {
///         Segment idle = takeIdle(byteSize, device, stream);          // one that was freed on this stream
///         return (idle != null ? idle : source.acquire(byteSize, 256, device)).address();
///     }
///
///     public void free(long address, long byteSize, int device, long stream) {
///         keepIdle(new Segment(address, byteSize, device), stream);   // work may still use it; see [#free]
///     }
///
///     public long trim(int device, long keepBytes) {                  // for each idle segment of a stream:
///         long fence = order.record(device, stream);
///         boolean over = order.passed(device, fence);
///         order.release(device, fence);
///         if (over) { source.release(segment); }                      // else the next trim does
///         …
///     }
/// }
/// ```
///
/// **Stream order.** The first work that uses a block is enqueued on the stream of `allocate`, after that call
/// returned; the last work is enqueued on the stream of `free`, before that call. So an allocator may hand a
/// freed block to the stream of the free at once. It may hand the block to another stream, or back to the
/// driver, only when it knows that the first stream has got past the free: see [StreamOrder]. An allocator with
/// the ability [StreamUses] itself waits for uses on further streams; for others the framework waits. The
/// framework turns a free after an event into a free on a stream that waits for the event.
///
/// **Optional abilities** are interfaces that an allocator implements, or hands out by [#extension], if it can:
///
/// | ability | what it adds | without it |
/// |---|---|---|
/// | [MemoryStatistics] | figures, exact peak, bytes by stream, history of blocks | the framework's own totals |
/// | [MemoryReclaim] | reclaims what a request needs, trims with reasons, lends | [#trim]; its pools can't lend |
/// | [OutOfMemoryArbiter] | waits, or throws its own exception, where no step helped | the program gets the refusal |
/// | [StreamUses] | waits itself for other streams that used a block | the stream of the free waits for them |
/// | [MemorySleep] | gives memory back while blocks keep their addresses | its pools can't sleep |
/// | [MemorySharing] | opens memory to other devices and processes | its pools can't be opened |
///
/// If the table says "can't", the program gets an [UnsupportedOperationException], or a
/// [io.cistern.errors.ConfigurationException] when it opens the pool. Every method of an ability has a default,
/// so an allocator implements only the methods that it can. The defaults of the others report that it can't,
/// and the framework acts as if the ability were missing.
///
/// **The types of this package:**
///
/// | types | for |
/// |---|---|
/// | [AllocatorProvider], [Availability] | every plug-in: its name, and whether it can run here |
/// | [AllocatorContext], [DeviceEnvironment] | every plug-in: its options, what it builds on, and the devices |
/// | [SegmentSource]: [RangeSource] with [Segment], [PageSource] with [PageTraits] | an allocator over a source |
/// | [StreamOrder], [EventSink] | an allocator that keeps memory: fences, and reports of the memory that it holds |
/// | [AllocatorAdaptor] | an allocator around another one |
/// | [TrimMode], [TrimResult], [SleepMode], [HostMemory] | arguments and results of abilities |
/// | [GraphAllocator] | an allocator with memory of its own for CUDA graphs |
/// | [SegmentSourceProvider] | a plug-in that provides a source |
///
/// **Threads.** Any thread may call any method at any time, and several threads at once for one device and
/// stream. Closing an [allocator][io.cistern.Allocator] waits for its calls that are under way, so an allocator
/// that closes itself in [#allocate] or [#free] gets an [IllegalStateException].
///
/// **Devices.** One allocator serves all devices, with ordinals below [DeviceEnvironment#deviceCount]. The
/// framework makes no context current for a call. The methods of `CudaDriver` name the device and need none. Code
/// that calls CUDA in another way makes the device's primary context current, and restores the previous one
/// afterwards.
///
/// **Captures.** A call may come while streams are captured into graphs. Calls through `CudaDriver` do not
/// disturb captures. [AllocatorProvider#servesGraphs] says which memory captured streams get.
///
/// **Tests.** `cistern-allocator-testkit` has `AllocatorConformance`, a suite that every allocator must pass. A
/// subclass with one method runs it on a simulated GPU.
public interface DeviceAllocator extends AutoCloseable {
    /// Allocates memory for use on a stream.
    ///
    /// @implSpec The address is a multiple of 256, not 0, below 2^49, and no other live block of any allocator
    ///     overlaps `[address, address + byteSize)`. If the method throws, nothing is allocated.
    /// @param byteSize bytes wanted, at least 1 and less than 2^48 (the framework handles all other sizes itself)
    /// @param device the device's ordinal
    /// @param stream the stream on which the block is used first. 0 and 1 are one stream; 2 is the calling
    ///     thread's own, so two threads that name 2 name two streams
    /// @throws DeviceOutOfMemoryException if there is no memory; a driver's `OUT_OF_MEMORY` must become this
    ///     exception. The framework then takes its reclaim steps and calls again. It can't do so behind an
    ///     adaptor: [MemoryReclaim.Choice] lists the steps that are left to the allocator. Any other exception
    ///     reaches the program unchanged, with a suppressed exception that names the allocator
    long allocate(long byteSize, int device, long stream);

    /// Frees a block.
    ///
    /// @implSpec The framework calls it once for each successful [#allocate], with its address, byte size and
    ///     device. Such a call must not throw, even if the context is dead.
    /// @param stream the stream of the last use. If its end was [announced][#streamClosing] since the block
    ///     was allocated, the stream may be gone while its work goes on, and the handle may name a later
    ///     stream: then the allocator keeps the block until all streams of the device have done their work
    ///     ([StreamOrder#recordAll]). For a block that was allocated after that end, the handle names the present
    ///     stream
    void free(long address, long byteSize, int device, long stream);

    /// Returns the bytes obtained from the driver and not yet given back: those of live blocks and of idle
    /// memory.
    ///
    /// @return empty if unknown: 0 means that nothing is held
    default OptionalLong reservedBytes(int device) {
        return OptionalLong.empty();
    }

    /// Gives idle memory back to the driver until at most `keepBytes` are reserved, without waiting for running
    /// work. Memory that the driver refuses to take back stays with the allocator for a later trim; that is no
    /// failure.
    ///
    /// @return bytes of the device that the driver took back
    default long trim(int device, long keepBytes) {
        return 0;
    }

    /// Called when a stream is about to end. Its handle may name another stream later, so the allocator forgets
    /// everything that it keeps under the handle. This call is the last chance to record fences on the stream;
    /// recorded fences stay valid: see [StreamOrder]. Later frees may still name the stream: see [#free]. An
    /// allocation or a [recorded use][StreamUses] names the present stream of a handle. Streams that end
    /// unannounced are not reported.
    default void streamClosing(int device, long stream) {}

    /// Called after the program made a stream wait for another stream of the device: later work of `stream` runs
    /// after all work that had been enqueued on `awaited` by some earlier moment. Only waits made by
    /// [io.cistern.CudaStream#await] are announced, so an allocator may record them but must not assume that it
    /// sees every wait. Must not throw.
    default void streamWaits(int device, long stream, long awaited) {}

    /// Returns an optional ability: one of those above, or a type of the allocator's own.
    ///
    /// @return empty if this allocator lacks it
    default <T> Optional<T> extension(Class<T> type) {
        return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
    }

    /// Returns all memory to the driver. If the driver refuses, this tries again a few times, since no later
    /// call does. The framework calls it once, after the last block has been freed, on the thread that freed
    /// that block, that closed the allocator, or that ended the last capture. No stream is captured when the
    /// call begins. If the driver refuses a call because of a capture that began meanwhile, this may throw the
    /// driver's exception, and is called again after the captures.
    @Override
    default void close() {}
}
