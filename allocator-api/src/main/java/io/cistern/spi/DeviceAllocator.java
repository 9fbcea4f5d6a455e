package io.cistern.spi;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.Optional;
import java.util.OptionalLong;

/// Hands out device memory in stream order. **A plug-in implements this interface and an
/// [AllocatorProvider].** Only [#allocate] and [#free] have no default; the defaults of the other methods
/// are right for an allocator that keeps no freed memory. An allocator that keeps freed memory, even only
/// memory that the driver refuses to take back, also implements [#trim], [#streamClosing] and [#close].
///
/// A plug-in needs no code for statistics, limits, ownership records or leak reports: the framework
/// provides these for every allocator.
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
/// **Stream order.** The first work that uses a block is enqueued on the stream of `allocate`, after that
/// call returned; the last work is enqueued on the stream of `free`, before that call. So an allocator may
/// immediately hand out a freed block for the stream of the free. It may hand out the block for another
/// stream, or return it to the driver, only when it knows that the stream of the free has completed all
/// work enqueued before the free: see [StreamOrder].
///
/// If the program [records][io.cistern.DeviceMemory#recordUse] that other streams also use the block, an
/// allocator with the ability [StreamUses] waits for these streams itself. For any other allocator, the
/// framework makes the stream of the free wait for them. If the program frees a block [after an
/// event][io.cistern.DeviceMemory#freeAfter], the allocator sees an ordinary free, on a stream that waits
/// for the event.
///
/// **Optional abilities** are interfaces that an allocator implements, or whose implementation it returns
/// from [#extension]:
///
/// | ability | what it adds | without it |
/// |---|---|---|
/// | [MemoryStatistics] | figures, exact peak, bytes by stream, history of blocks | the framework's own totals |
/// | [MemoryReclaim] | reclaims as much as a request needs, trims with reasons, lends | [#trim]; its pools can't lend |
/// | [OutOfMemoryArbiter] | waits, or throws its own exception, if no step helped | the program gets the refusal |
/// | [StreamUses] | waits itself for other streams that used a block | the stream of the free waits for them |
/// | [MemorySleep] | gives memory back while blocks keep their addresses | its pools can't sleep |
/// | [MemorySharing] | opens memory to other devices and processes | its pools can't be opened |
///
/// If the table says "can't", the program gets an [UnsupportedOperationException], or a
/// [io.cistern.errors.ConfigurationException] when it opens the pool. Every method of an ability has a
/// default, so an allocator overrides only the methods that it supports. The defaults report that the
/// method is not supported; the framework then acts as if the ability were missing.
///
/// **The types of this package:**
///
/// | types | for |
/// |---|---|
/// | [AllocatorProvider], [Availability] | every plug-in: its name, and whether it can run here |
/// | [AllocatorContext], [DeviceEnvironment] | every plug-in: its options, memory to build on, the devices |
/// | [SegmentSource]: [RangeSource] with [Segment], [PageSource] with [PageTraits] | an allocator over a source |
/// | [StreamOrder], [EventSink] | an allocator that keeps memory: fences, and reports of the memory that it holds |
/// | [AllocatorAdaptor] | an allocator around another one |
/// | [TrimMode], [TrimResult], [SleepMode], [HostMemory] | arguments and results of abilities |
/// | [GraphAllocator] | an allocator with memory of its own for CUDA graphs |
/// | [SegmentSourceProvider] | a plug-in that provides a source |
///
/// **Threads.** Any thread may call any method at any time, and several threads may call concurrently, even
/// for the same device and stream. Closing an [allocator][io.cistern.Allocator] waits for the calls that
/// are under way. So if [#allocate] or [#free] closes the allocator that it serves, the close throws an
/// [IllegalStateException].
///
/// **Devices.** One allocator serves all devices, with ordinals below [DeviceEnvironment#deviceCount]. The
/// framework makes no context current for a call. The methods of `CudaDriver` take the device as an
/// argument, so they need no current context. Code that calls CUDA in another way must make the device's
/// primary context current, and restore the previous context afterwards.
///
/// **Captures.** A method may be called while streams are captured into graphs. Calls through `CudaDriver`
/// do not disturb captures. [AllocatorProvider#servesGraphs] says which memory captured streams get.
///
/// **Tests.** `cistern-allocator-testkit` has `AllocatorConformance`, a suite that every allocator must pass. A
/// subclass with one method runs it on a simulated GPU.
public interface DeviceAllocator extends AutoCloseable {
    /// Allocates memory for use on a stream.
    ///
    /// @implSpec The address is a multiple of 256, not 0, below 2^49, and no other live block of any allocator
    ///     overlaps `[address, address + byteSize)`. If the method throws, nothing is allocated.
    /// @param byteSize the requested bytes, at least 1 and less than 2^48; the framework handles all other sizes
    ///     itself
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
    /// @implSpec The framework calls this method once for each successful [#allocate], with the same
    ///     address, byte size and device. Such a call must not throw, even if the context is dead.
    /// @param stream the stream of the last use. Usually this is the stream that has the handle now. The
    ///     exception is a block that was allocated before the end of a stream with this handle was
    ///     [announced][#streamClosing]: that stream may be gone while its work still runs, and the handle
    ///     may already name another stream. The allocator then keeps the block until all work enqueued so
    ///     far on the device is done ([StreamOrder#recordAll])
    void free(long address, long byteSize, int device, long stream);

    /// Returns the bytes that the allocator holds from the driver, in live blocks and in idle memory.
    ///
    /// @return empty if unknown; 0 means that the allocator holds nothing; the framework treats a negative
    ///     number as unknown
    default OptionalLong reservedBytes(int device) {
        return OptionalLong.empty();
    }

    /// Gives idle memory back to the driver until at most `keepBytes` are reserved, without waiting for
    /// running work. Memory that the driver refuses to take back stays with the allocator for a later trim;
    /// that is not a failure.
    ///
    /// @return the bytes that the driver took back
    default long trim(int device, long keepBytes) {
        return 0;
    }

    /// Called when a stream is about to end. Its handle may name another stream later, so the allocator
    /// must forget everything that it keeps under the handle. This call is the last chance to record fences
    /// on the stream; recorded fences stay valid: see [StreamOrder]. Later frees may still name the stream:
    /// see [#free]. In an allocation or a [recorded use][StreamUses], a handle always names the stream that
    /// has it now. If a stream ends without being announced, this method is not called.
    default void streamClosing(int device, long stream) {}

    /// Called after the program made a stream wait for another stream of the same device. Work enqueued
    /// later on `stream` runs after all work that had been enqueued on `awaited` by some earlier moment,
    /// such as the recording of an event. The framework announces only waits made by
    /// [io.cistern.CudaStream#await], so an allocator must not assume that it is notified of every wait.
    /// Must not throw.
    default void streamWaits(int device, long stream, long awaited) {}

    /// Returns an optional ability: one of those in the table of [DeviceAllocator], or a type of the
    /// allocator's own.
    ///
    /// @return empty if this allocator lacks it
    default <T> Optional<T> extension(Class<T> type) {
        return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
    }

    /// Returns all memory to the driver. If the driver refuses a call, the allocator should repeat that
    /// call a few times, because the framework calls this method only once.
    ///
    /// The framework calls this method after the last block has been freed, and while no stream is
    /// captured: on the thread that freed that block, closed the allocator, or ended the last capture. If a
    /// capture begins during the call and the driver refuses a call because of it, this method may throw
    /// the driver's exception. Only then does the framework call it again, after the captures.
    @Override
    default void close() {}
}
