package io.cistern.caching.internal.heap;

/// Blocks that are claimed to go back to the driver, in the order of their claims. The list goes through
/// [Blocks#listNext], so no block is lost when the Java heap is full.
///
/// Filled under the shard's lock; emptied by the claiming thread, which holds the driver lock.
public final class ClaimedBlocks {
    private final Blocks blocks;
    private int first = Blocks.NONE;
    private int last = Blocks.NONE;

    public ClaimedBlocks(Blocks blocks) {
        this.blocks = blocks;
    }

    void add(int block) {
        blocks.listNext[block] = Blocks.NONE;
        if (first == Blocks.NONE) {
            first = block;
        } else {
            blocks.listNext[last] = block;
        }
        last = block;
    }

    public boolean isEmpty() {
        return first == Blocks.NONE;
    }

    /// The next block, or [Blocks#NONE].
    public int first() {
        return first;
    }

    public int remove() {
        int block = first;
        first = blocks.listNext[block];
        return block;
    }
}
