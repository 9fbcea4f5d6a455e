package io.cistern.caching;

/// The stretches of a shard's arenas that have no pages, in a list through [Blocks#listNext]. An arena starts as
/// one hole, so its unused tail is one like any other. There are few of them: only giving memory back makes more.
///
/// Guarded by the shard's lock.
final class Holes {
    private final Blocks blocks;
    private int first = Blocks.NONE;

    Holes(Blocks blocks) {
        this.blocks = blocks;
    }

    /// Bytes to map at a hole's start so that they, with the free block in front, hold a request, or all of it if
    /// the free block behind must help too.
    long missingAt(int hole, long byteSize) {
        return Math.min(byteSize - freeBytes(blocks.previous[hole]), blocks.byteSize[hole]);
    }

    /// The hole to fill for a request: with the free blocks on both sides it is large enough, and it takes the
    /// fewest bytes; the lowest among equals.
    ///
    /// @return [Blocks#NONE] if none is large enough
    int fewestMissing(long byteSize) {
        int best = Blocks.NONE;
        long bestMissing = Long.MAX_VALUE;
        for (int hole = first; hole != Blocks.NONE; hole = blocks.listNext[hole]) {
            long missing = missingAt(hole, byteSize);
            boolean better =
                    missing < bestMissing || (missing == bestMissing && blocks.address[hole] < blocks.address[best]);
            if (better && fits(hole, byteSize)) {
                best = hole;
                bestMissing = missing;
            }
        }
        return best;
    }

    private boolean fits(int hole, long byteSize) {
        long before = freeBytes(blocks.previous[hole]);
        long after = freeBytes(blocks.next[hole]);
        return before + blocks.byteSize[hole] + after >= byteSize;
    }

    private long freeBytes(int block) {
        return blocks.is(block, Blocks.FREE) ? blocks.byteSize[block] : 0;
    }

    /// Makes a block a hole, one with the holes beside it.
    void publish(int block) {
        int next = blocks.next[block];
        if (blocks.is(next, Blocks.HOLE)) {
            remove(next);
            blocks.absorbNext(block);
        }
        int previous = blocks.previous[block];
        if (blocks.is(previous, Blocks.HOLE)) {
            blocks.absorbNext(previous);
        } else {
            insert(block);
        }
    }

    void insert(int block) {
        blocks.state[block] = Blocks.HOLE;
        blocks.listPrevious[block] = Blocks.NONE;
        blocks.listNext[block] = first;
        if (first != Blocks.NONE) {
            blocks.listPrevious[first] = block;
        }
        first = block;
    }

    void remove(int block) {
        int before = blocks.listPrevious[block];
        int after = blocks.listNext[block];
        if (after != Blocks.NONE) {
            blocks.listPrevious[after] = before;
        }
        if (before != Blocks.NONE) {
            blocks.listNext[before] = after;
        } else {
            first = after;
        }
    }

    int count() {
        int count = 0;
        for (int hole = first; hole != Blocks.NONE; hole = blocks.listNext[hole]) {
            count++;
        }
        return count;
    }
}
