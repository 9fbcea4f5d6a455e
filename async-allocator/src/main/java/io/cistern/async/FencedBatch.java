package io.cistern.async;

import org.jspecify.annotations.Nullable;

/// A batch of freed blocks that wait for one stream, at one fence. Guarded by the monitor of [DeferredFrees].
///
/// It is *open* until its fence is recorded. The fence comes after all work that the stream has by then, so a
/// batch is not left open for long.
final class FencedBatch {
    /// No fence: not recorded yet, or there is nothing to wait for.
    static final long NONE = 0;

    /// A fence costs a call; blocks that wait for one cost memory.
    private static final int MAX_BLOCKS = 16;

    private static final long MAX_BYTES = 32 << 20;

    private @Nullable BlockUse first;
    private int blocks;
    private long byteSize;
    long fence;
    boolean open = true;

    /// Its number among all batches that were closed.
    long closedAs;

    /// The next batch of the same stream.
    @Nullable
    FencedBatch next;

    void add(BlockUse use) {
        use.nextInBatch = first;
        use.batch = this;
        first = use;
        blocks++;
        byteSize += use.block.byteSize;
        use.block.awaited++;
    }

    @Nullable
    BlockUse first() {
        return first;
    }

    /// Takes a block out; returns null if there is none.
    @Nullable
    BlockUse take() {
        BlockUse taken = first;
        if (taken != null) {
            first = taken.nextInBatch;
            taken.nextInBatch = null;
            taken.batch = null;
            blocks--;
            byteSize -= taken.block.byteSize;
        }
        return taken;
    }

    boolean isEmpty() {
        return first == null;
    }

    boolean isFull() {
        return blocks >= MAX_BLOCKS || byteSize >= MAX_BYTES;
    }

    /// Returns whether it waits for nothing, without asking the driver.
    boolean isFree() {
        return !open && fence == NONE;
    }

    /// Closes it with a fence after the stream's present work, or with [#NONE] if there is nothing to wait for.
    void seal(long recorded) {
        fence = recorded;
        open = false;
    }
}
