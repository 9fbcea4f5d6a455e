package io.cistern.diagnostics;

import java.util.List;
import java.util.OptionalLong;

/// A range of memory that an allocator holds from the driver, and the blocks that fill it.
///
/// @param address where it begins
/// @param byteSize its length: the sum of its blocks' lengths
/// @param stream the stream that its idle blocks serve; empty if they serve any stream, or if that stream
///     has ended
/// @param expandable whether it lies in a larger range of addresses where it can grow, as a segment of pages does;
///     false for one that came whole from its source
/// @param blocks the blocks by address, each beginning where the one before ends
public record SegmentMemory(long address, long byteSize, OptionalLong stream, boolean expandable, List<Block> blocks) {
    /// Copies the list.
    public SegmentMemory {
        blocks = List.copyOf(blocks);
    }

    /// A part of a segment.
    ///
    /// @param address where it begins
    /// @param byteSize its length
    /// @param state its state
    public record Block(long address, long byteSize, State state) {}

    /// The states of a block.
    public enum State {
        /// Handed out, or in a thread's cache to be handed out next.
        TAKEN,
        /// Freed, but another stream may still use it.
        WAITING,
        /// Free.
        IDLE
    }
}
