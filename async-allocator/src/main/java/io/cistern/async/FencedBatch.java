package io.cistern.async;

import org.jspecify.annotations.Nullable;

/// Freed blocks that wait for one stream, behind one fence. Guarded by the monitor of [DeferredFrees].
///
/// It is *open* until its fence is recorded, which comes behind what the stream was given until then; so it is
/// not left open for long.
final class FencedBatch {
    /// No fence: not recorded yet, or there is nothing to wait for.
    static final long NONE = 0;

    /// A fence costs a call; what waits for it meanwhile, memory.
    private static final int MAX_BLOCKS = 16;

    private static final long MAX_BYTES = 32 << 20;

    private @Nullable BlockUse first;
    private int blocks;
    private long byteSize;
    long fence;
    boolean open = true;

    /// Which one it was of all that were closed.
    long closedAs;

    /// Of the same stream.
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

    /// Takes a block out, if there is one.
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

    /// Whether it waits for nothing, as is known without asking.
    boolean isFree() {
        return !open && fence == NONE;
    }

    /// Closes it with a fence behind what the stream was given until now, or [#NONE] if nothing is to be waited
    /// for.
    void seal(long recorded) {
        fence = recorded;
        open = false;
    }
}
