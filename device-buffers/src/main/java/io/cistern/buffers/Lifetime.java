package io.cistern.buffers;

/// Says on what, besides itself, the memory of a [DeviceBuffer] depends, and what closing the buffer does. A
/// buffer without a lifetime owns its block alone.
sealed interface Lifetime
        permits ParentBuffer, SharedBlock, ArenaGeneration, WatchedBlock, BorrowedMemory, ViewedBlock {
    /// Returns whether the memory ended before the buffer was closed.
    boolean isOver();

    /// Returns a message that says what ended the memory.
    String whatEnded();

    /// Returns the address of the block that a buffer lies in.
    ///
    /// @param address the buffer's
    long block(long address);

    /// Returns whether the memory belongs to no allocator.
    default boolean isBorrowed() {
        return false;
    }

    /// Called when a buffer with this lifetime is used on another stream than its own.
    default void usedOnAnotherStream() {}

    /// Closes a buffer with this lifetime.
    ///
    /// @param address the buffer's
    void close(DeviceBuffer buffer, long address);

    /// Closes a buffer with this lifetime; the memory may be reused after an event.
    void closeAfter(DeviceBuffer buffer, long address, long event);
}
