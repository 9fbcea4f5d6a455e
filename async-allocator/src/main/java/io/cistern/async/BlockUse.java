package io.cistern.async;

import org.jspecify.annotations.Nullable;

/// That a stream uses a block; and once the block is freed, its place in the batch of that stream. Guarded by the
/// monitor of [DeferredFrees].
final class BlockUse {
    final DeferredFree block;
    final UsingStream on;
    final @Nullable BlockUse nextOfBlock;

    /// For where this is the first block of a batch.
    final FencedBatch newBatch = new FencedBatch();

    /// What the block waits in; null before and after.
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
