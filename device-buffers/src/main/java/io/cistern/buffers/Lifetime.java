package io.cistern.buffers;

/// What the memory of a [DeviceBuffer] depends on besides that buffer, and what its close does. A buffer without
/// one owns its block alone.
sealed interface Lifetime permits ParentBuffer, SharedBlock, ArenaGeneration, WatchedBlock, BorrowedMemory {
    /// Whether the memory ended before the buffer did.
    boolean isOver();

    /// What ended it, for messages.
    String whatEnded();

    /// The address of the block that a buffer lies in.
    ///
    /// @param address the buffer's
    long block(long address);

    /// Whether no allocator knows the memory.
    default boolean isBorrowed() {
        return false;
    }

    /// A buffer that depends on this is used on another stream than its own.
    default void usedOnAnotherStream() {}

    /// A buffer that depends on this is closed.
    ///
    /// @param address the buffer's
    void close(DeviceBuffer buffer, long address);

    /// The same behind an event.
    void closeAfter(DeviceBuffer buffer, long address, long event);
}
