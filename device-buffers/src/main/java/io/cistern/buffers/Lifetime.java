package io.cistern.buffers;

/// States what else the memory of a [DeviceBuffer] depends on, and what closing the buffer does. A buffer without a
/// lifetime owns its block alone.
sealed interface Lifetime
        permits ParentBuffer, SharedBlock, ArenaGeneration, WatchedBlock, BorrowedMemory, ViewedBlock {
    /// Returns whether the memory ended before the buffer was closed; by default it ends with the buffer alone.
    default boolean isOver() {
        return false;
    }

    /// Returns a message that says what ended the memory.
    default String whatEnded() {
        return "";
    }

    /// Returns the address of the block that a buffer lies in; by default its own.
    ///
    /// @param address the buffer's
    default long block(long address) {
        return address;
    }

    /// Returns whether the memory belongs to no allocator.
    default boolean isBorrowed() {
        return false;
    }

    /// Called when a buffer with this lifetime is used on a stream other than its own.
    default void usedOnAnotherStream() {}

    /// Closes a buffer with this lifetime.
    ///
    /// @param address the buffer's
    void close(DeviceBuffer buffer, long address);

    /// Closes a buffer with this lifetime; the memory may be reused after an event.
    void closeAfter(DeviceBuffer buffer, long address, long event);
}
