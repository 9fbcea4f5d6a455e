package io.cistern.spi;

/// The optional ability of a [DeviceAllocator] to keep a freed block until streams other than that of the
/// free have completed their uses of the block. For an allocator without this ability, the framework makes
/// the stream of the free wait for the others. That is always correct, but delays later work on that
/// stream.
///
/// An adaptor that hands out addresses other than its upstream's must not pass on its upstream's ability
/// unchanged, because the upstream does not know these addresses.
public interface StreamUses {
    /// Records that a live block is also used on another stream, by work enqueued there until the block is
    /// freed.
    ///
    /// @implSpec Once the block is freed, on whichever stream, its memory may be handed out only to work
    ///     that runs after everything enqueued on the recorded stream before the free. If
    ///     [DeviceAllocator#streamClosing] announced the end of that stream before the free, only the work
    ///     enqueued before the announcement counts. A second call for the same stream changes nothing.
    /// @param address the address of a live block of this allocator
    /// @param device the device of the block and the stream
    /// @param stream a stream that exists
    /// @return true if the use was recorded; false if this allocator can't record it. The framework then
    ///     makes the stream of the free wait
    default boolean recordUse(long address, int device, long stream) {
        return false;
    }
}
