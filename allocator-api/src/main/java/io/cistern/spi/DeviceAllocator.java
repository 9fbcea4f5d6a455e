package io.cistern.spi;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.Optional;
import java.util.OptionalLong;

/// Hands out device memory in stream order. **This is what a plug-in implements**: two methods; everything else has
/// a default that is safe.
///
/// Statistics, limits, ownership, history and leak reports are not the plug-in's business: the framework keeps them
/// for every allocator, at its own boundary.
///
/// ```java
/// final class DoublingAllocator implements DeviceAllocator {
///     private final RangeSource source;                    // from AllocatorContext.segments("linear")
///     public long allocate(long byteSize, int device, long stream) {
///         return source.acquire(byteSize, 256, device).address();
///     }
///     public void free(long address, long byteSize, int device, long stream) { … }
/// }
/// ```
///
/// **Stream order.** Memory may be used by work enqueued on `stream` after `allocate` returned, until work enqueued
/// on the stream given to `free`, before that call. An allocator may therefore hand a freed block to the same stream
/// at once, and to another stream only when it knows that the first has got past the free. Uses on further streams
/// are the business of allocators that [can][StreamUses] wait for them, else of the framework; so is a free after an
/// event, which comes as a free on a stream that waits for it.
///
/// **Optional abilities** are interfaces that an allocator implements, or hands out by [#extension], if it can:
///
/// | ability | what it adds | without it |
/// |---|---|---|
/// | [MemoryStatistics] | figures, exact peak, bytes by stream, history of blocks | the framework's own totals |
/// | [MemoryReclaim] | reclaims what a request needs, trims with reasons, lends | [#trim]; its pools can't lend |
/// | [StreamUses] | waits itself for other streams that used a block | the stream of the free waits for them |
/// | [MemorySleep] | gives memory back while blocks keep their addresses | its pools can't sleep |
/// | [MemorySharing] | opens memory to other devices and processes | its pools can't be opened |
///
/// What "can't" is an [UnsupportedOperationException], or a [io.cistern.errors.ConfigurationException] on opening.
///
/// All their methods have defaults. An allocator that has a part of an ability implements that part; the defaults of
/// the others say by what they return that it can't, and the framework does as if the ability were missing.
///
/// **Threads.** Any thread may call any method at any time, also several at once for one device and stream. Closing
/// an [allocator][io.cistern.Allocator] waits for its calls that are under way: an allocator that closes itself in
/// [#allocate] or [#free] gets an [IllegalStateException].
public interface DeviceAllocator extends AutoCloseable {
    /// Allocates memory.
    ///
    /// @implSpec The address is a multiple of 256, not 0, below 2^49, and no other live block of any allocator
    ///     overlaps `[address, address + byteSize)`. Anything thrown leaves nothing allocated.
    /// @param byteSize bytes wanted, at least 1 and less than 2^48 (the framework answers all others itself)
    /// @param device the device's ordinal
    /// @param stream the stream on which it is used first
    /// @throws DeviceOutOfMemoryException when there is no memory; the only failure after which a retry makes
    ///     sense. Anything else reaches the program as it is, with a note of the allocator among its suppressed
    ///     exceptions
    long allocate(long byteSize, int device, long stream);

    /// Takes memory back.
    ///
    /// @implSpec Called once for each successful [#allocate], with its address, byte size and device. Must not
    ///     throw for such a call, also when the context is dead.
    /// @param stream the stream of the last use
    void free(long address, long byteSize, int device, long stream);

    /// Bytes obtained from the driver and not yet returned, blocks in use and idle memory alike.
    ///
    /// @return empty if unknown, never 0 for that
    default OptionalLong reservedBytes(int device) {
        return OptionalLong.empty();
    }

    /// Gives idle memory back to the driver until at most `keepBytes` are reserved, without waiting for running
    /// work.
    ///
    /// @return bytes given back
    default long trim(int device, long keepBytes) {
        return 0;
    }

    /// Says that a stream ends: its handle may come again for another stream, and nothing may be recorded on it
    /// later. What was recorded for it stays its own: see [StreamOrder].
    default void streamClosing(int device, long stream) {}

    /// Asks for an optional ability: one of the five above, or a type of the allocator's own.
    ///
    /// @return empty if this allocator has not got it
    default <T> Optional<T> extension(Class<T> type) {
        return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
    }

    /// Returns all memory to the driver. Called once, after the last block has been freed.
    @Override
    default void close() {}
}
