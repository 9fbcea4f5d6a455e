package io.cistern.async;

import java.util.ArrayList;
import java.util.List;

/// Freed blocks that wait for one stream, behind one fence. Guarded by the lock of [LaterFrees].
///
/// It is *open* until its fence is recorded, which comes behind what the stream was given until then; so it is not left
/// open for long.
final class FencedBatch {
    /// No fence: not recorded yet, or, once closed, there is nothing to wait for.
    static final long NONE = 0;

    /// A fence costs a call; what waits for it meanwhile, memory.
    private static final int MOST_BLOCKS = 16;

    private static final long MOST_BYTES = 32 << 20;

    final List<LaterFree> blocks = new ArrayList<>();
    private long byteSize;
    long fence;
    boolean open = true;

    void add(LaterFree block) {
        blocks.add(block);
        byteSize += block.byteSize;
        block.awaited++;
    }

    boolean isFull() {
        return blocks.size() >= MOST_BLOCKS || byteSize >= MOST_BYTES;
    }

    /// Whether it waits for nothing, as is known without asking.
    boolean isFree() {
        return !open && fence == NONE;
    }

    /// Closes it with a fence behind what the stream was given until now, or [#NONE] if nothing is to be waited for.
    void seal(long recorded) {
        fence = recorded;
        open = false;
    }
}
