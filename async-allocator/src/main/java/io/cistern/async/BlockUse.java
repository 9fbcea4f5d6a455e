package io.cistern.async;

import org.jspecify.annotations.Nullable;

/// One stream's use of a block and, once the block is freed, the block's place in a batch of that stream.
/// Guarded by the monitor of [DeferredFrees].
final class BlockUse {
    final DeferredFree block;
    final UsingStream on;
    final @Nullable BlockUse nextOfBlock;

    /// The batch that this block opens if it is the first one.
    final FencedBatch newBatch = new FencedBatch();

    /// The batch that the block waits in; null before and after.
    @Nullable
    FencedBatch batch;

    @Nullable
    BlockUse nextInBatch;

    BlockUse(DeferredFree block, UsingStream on, @Nullable BlockUse nextOfBlock) {
        this.block = block;
        this.on = on;
        this.nextOfBlock = nextOfBlock;
    }
}
