package io.cistern.spi;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.Optional;
import java.util.OptionalLong;

/// Hands out device memory in stream order. **This is what a plug-in implements**: two methods and an
/// [AllocatorProvider]; everything else has a default that is right for an allocator that keeps no freed
/// memory. An allocator that keeps freed memory, even only memory that the driver refuses to take back,
/// also implements [#trim], [#streamClosing] and [#close].
///
/// A plug-in needs no code for statistics, limits, ownership records, history or leak reports: the
/// framework provides these for every allocator.
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
/// returned; the last work is enqueued on the stream of `free`, before that call. So an allocator may
/// immediately hand a freed block to the stream of the free. It may hand the block to another stream, or
/// back to the driver, only when it knows that the stream of the free has passed the free: see
/// [StreamOrder].
///
/// If the program [records][io.cistern.DeviceMemory#recordUse] that other streams use the block too, an
/// allocator with the ability [StreamUses] waits for these itself. For any other allocator, the framework
/// makes the stream of the free wait for them. If the program frees a block [after an
/// event][io.cistern.DeviceMemory#freeAfter], the allocator sees an ordinary free, on a stream that waits
/// for the event.
///
/// **Optional abilities** are interfaces that an allocator implements, or returns from [#extension]:
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
/// [io.cistern.errors.ConfigurationException] when it opens the pool. Every method of an ability has a
/// default, so an allocator overrides only the methods that it supports. The default of each other method
/// reports that the allocator can't do this, and the framework then acts as if the ability were missing.
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
/// **Threads.** Any thread may call any method at any time, and several threads may call concurrently, even
/// for the same device and stream. Closing an [allocator][io.cistern.Allocator] waits for the calls that
/// are under way. So a call of [#allocate] or [#free] that closes the allocator that it serves gets an
/// [IllegalStateException].
///
/// **Devices.** One allocator serves all devices, with ordinals below [DeviceEnvironment#deviceCount]. The
/// framework makes no context current for a call. The methods of `CudaDriver` name the device, so they need
/// no current context. Code that calls CUDA in another way must make the device's primary context current,
/// and restore the previous context afterwards.
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
    /// @param stream the stream on which the block is used first. 0 and 1 both name the legacy default
    ///     stream. 2 names the per-thread default stream of the calling thread, so it is another stream on
    ///     each thread
    /// @throws DeviceOutOfMemoryException if there is no memory; a driver's `OUT_OF_MEMORY` must become this
    ///     exception. The framework then takes its reclaim steps and calls again. The exception of an
    ///     adaptor's upstream reaches the adaptor first, so an upstream takes steps of its own within this
    ///     call: [MemoryReclaim.Choice] lists those that it may take. Any other exception reaches the
    ///     program unchanged, with a suppressed exception that names the allocator
    long allocate(long byteSize, int device, long stream);

    /// Frees a block.
    ///
    /// @implSpec The framework calls it once for each successful [#allocate], with its address, byte size and
    ///     device. Such a call must not throw, even if the context is dead.
    /// @param stream the stream of the last use. Usually this is the stream that has the handle now. The
    ///     exception is a block that was allocated before the end of a stream with this handle was
    ///     [announced][#streamClosing]: that stream may be gone while its work goes on, and the handle may
    ///     already name another stream. The allocator then keeps the block until all streams of the device
    ///     have done their present work ([StreamOrder#recordAll])
    void free(long address, long byteSize, int device, long stream);

    /// Returns the bytes obtained from the driver and not yet given back: those of live blocks and of idle
    /// memory.
    ///
    /// @return empty if unknown; 0 means that the allocator holds nothing; negative bytes count as unknown
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

    /// Called when a stream is about to end. Its handle may name another stream later, so the allocator
    /// must forget everything that it keeps under the handle. This call is the last chance to record fences
    /// on the stream; recorded fences stay valid: see [StreamOrder]. Later frees may still name the stream:
    /// see [#free]. In an allocation or a [recorded use][StreamUses], a handle always names the stream that
    /// has it now. If a stream ends without being announced, this method is not called.
    default void streamClosing(int device, long stream) {}

    /// Called after the program made a stream wait for another stream of the same device. Later work of
    /// `stream` then runs after all work that had been enqueued on `awaited` by some earlier moment, such
    /// as the recording of an event. The framework announces only waits made by
    /// [io.cistern.CudaStream#await], so an allocator must not assume that it sees every wait. Must not
    /// throw.
    default void streamWaits(int device, long stream, long awaited) {}

    /// Returns an optional ability: one of those in the table of [DeviceAllocator], or a type of the
    /// allocator's own.
    ///
    /// @return empty if this allocator lacks it
    default <T> Optional<T> extension(Class<T> type) {
        return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
    }

    /// Returns all memory to the driver. If the driver refuses a call, the allocator should repeat it a few
    /// times, because the framework calls this method only once.
    ///
    /// The framework calls it after the last block has been freed, and while no stream is captured: on the
    /// thread that freed that block, that closed the allocator, or that ended the last capture. If a
    /// capture begins meanwhile and the driver refuses a call because of it, this method may throw the
    /// driver's exception. Only then does the framework call it again, after the captures.
    @Override
    default void close() {}
}
