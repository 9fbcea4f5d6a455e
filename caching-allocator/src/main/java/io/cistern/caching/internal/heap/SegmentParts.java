package io.cistern.caching.internal.heap;

import io.cistern.caching.internal.base.ShardCounters;

/// The free parts of plain segments, which are counted because they can't go back, and the segments that are
/// wholly free, which age. There a free run is one free block.
///
/// Guarded by the shard's lock.
final class SegmentParts {
    private final Blocks blocks;
    private final ShardCounters counters;
    /// So far: the clock by which idle segments age.
    private long searches;

    SegmentParts(Blocks blocks, ShardCounters counters) {
        this.blocks = blocks;
        this.counters = counters;
    }

    /// A block was looked for.
    void searched() {
        searches++;
    }

    /// A block became free.
    void freed(int block) {
        if (isWhole(block)) {
            blocks.range[block].idleSince = searches;
        } else {
            counters.pieceFreed(blocks.byteSize[block]);
        }
    }

    /// A free block was taken, or joined another one.
    void taken(int block) {
        if (!isWhole(block)) {
            counters.pieceTaken(blocks.byteSize[block]);
        }
    }

    private boolean isWhole(int block) {
        return blocks.byteSize[block] == blocks.range[block].byteSize;
    }
}
