package io.cistern.nccl.internal.symmetric;

import java.util.Arrays;

/// Keeps frees of one [SymmetricArena] that lacked Java heap; a later call makes them.
///
/// **Threads.** Guarded by the arena.
final class UnfinishedFrees {
    private static final int FIELDS = 3;

    /// Frees a block; if it throws an OutOfMemoryError, it has changed nothing.
    interface Freeing {
        void free(long offset, long byteSize, long stream);
    }

    /// Offset, size and stream of each free.
    private long[] frees = {};

    private int count;

    /// Makes room for the frees of that many blocks, so that adding one needs no Java heap.
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

    /// Makes the frees, the last one first, while there is Java heap.
    void finish(Freeing freeing) {
        while (count > 0) {
            int at = FIELDS * (count - 1);
            freeing.free(frees[at], frees[at + 1], frees[at + 2]);
            count--;
        }
    }
}
