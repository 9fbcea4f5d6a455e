package io.cistern.diagnostics;

import java.util.List;
import java.util.OptionalLong;

/// A range of memory that an allocator holds from the driver, and the blocks that fill it.
///
/// @param address its address
/// @param byteSize its length: the sum of its blocks' lengths
/// @param stream the stream that the segment's idle blocks serve; empty if they serve any stream, or if
///     that stream has ended
/// @param expandable whether the segment can grow within a larger range of addresses, as a segment of pages
///     can; false for a segment that came whole from its source
/// @param blocks the blocks by address; each begins where the previous one ends
public record SegmentMemory(long address, long byteSize, OptionalLong stream, boolean expandable, List<Block> blocks) {
    /// Copies the list.
    public SegmentMemory {
        blocks = List.copyOf(blocks);
    }

    /// A part of a segment.
    ///
    /// @param address its address
    /// @param byteSize its length
    /// @param state its state
    public record Block(long address, long byteSize, State state) {}

    /// The states of a block.
    public enum State {
        /// Handed out, or in a thread's cache.
        TAKEN,
        /// Freed, but another stream may still use it.
        WAITING,
        /// Free.
        IDLE
    }
}
