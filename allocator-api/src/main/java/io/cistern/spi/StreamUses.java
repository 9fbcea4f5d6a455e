package io.cistern.spi;

/// The optional ability of a [DeviceAllocator] to keep a freed block until streams other than that of the
/// free have passed their uses of it. For an allocator without it, the framework makes the stream of the
/// free wait for the others. That is always correct, but delays later work on that stream.
///
/// An adaptor that hands out addresses other than its upstream's must not pass on its upstream's ability
/// unchanged, because the upstream does not know these addresses.
public interface StreamUses {
    /// Records that a live block is also used on another stream, by work enqueued there until the block is
    /// freed.
    ///
    /// @implSpec After the free, on whichever stream, the memory may be handed out only to work that runs
    ///     after all work that the recorded stream had been given when the block was freed, or when the
    ///     stream ended if [DeviceAllocator#streamClosing] came first. A second call for the same stream
    ///     changes nothing.
    /// @param address where a live block of this allocator begins
    /// @param device the device of the block and the stream
    /// @param stream a stream that exists
    /// @return true if recorded; false if this allocator can't do so for this block. Then the framework
    ///     makes the stream of the free wait
    default boolean recordUse(long address, int device, long stream) {
        return false;
    }
}
