package io.cistern.nccl;

import java.util.Arrays;

/// Frees of one [SymmetricArena] that wanted Java heap when there was none: they are done with a later call.
///
/// **Threads.** Guarded by the arena.
final class UnfinishedFrees {
    private static final int FIELDS = 3;

    /// Frees a block, or throws an OutOfMemoryError and has changed nothing.
    interface Freeing {
        void free(long offset, long byteSize, long stream);
    }

    /// Offset, size and stream of each.
    private long[] frees = {};

    private int count;

    /// Makes room for the frees of so many blocks, so that none of them needs any.
    void makeRoomFor(int blocks) {
        if (blocks * FIELDS > frees.length) {
            frees = Arrays.copyOf(frees, 2 * blocks * FIELDS);
        }
    }

    void add(long offset, long byteSize, long stream) {
        int at = FIELDS * count++;
        frees[at] = offset;
        frees[at + 1] = byteSize;
        frees[at + 2] = stream;
    }

    /// Does them, the last one first, as far as there is Java heap.
    void finish(Freeing freeing) {
        while (count > 0) {
            int at = FIELDS * (count - 1);
            freeing.free(frees[at], frees[at + 1], frees[at + 2]);
            count--;
        }
    }
}
