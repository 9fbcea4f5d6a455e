package io.cistern.caching;

import java.util.Arrays;
import java.util.function.IntConsumer;
import java.util.function.IntPredicate;

/// Free blocks by the size of the [free run][FreeRuns] that they begin, mostly their own: lists by size with a
/// bitmap in two levels above them.
///
/// ```
/// bin      0 … 2047      2048 … 2111      2112 … 2175      …
/// holds    1 … 2048      (1, 2] MiB       (2, 4] MiB       …
///          granules      in 64 steps      in 64 steps
/// ```
///
/// 1. A size up to 1 MiB has a bin of its own, so the first block of the first bin that is not empty is the best
/// fit.
/// 2. Above, a bin holds sizes that differ by less than 1/64. In a request's own bin, some blocks may be too
///    small: up to [#SCAN] of them are looked at and the smallest that fits is taken, the lowest address among
///    equals.
/// 3. If none fits, the bitmaps lead to the next bin that is not empty; again the smallest of the first [#SCAN].
/// A block may be shorter than its free run, and so not fit after all; then the next bin is looked at, up to
/// [#MAX_BINS]. Before the search fails, all of the request's own bin is looked at.
///
/// The heads of 64 lists stand side by side, one for each bit of a word, and only where a list ever had a block:
/// a program may have thousands of streams, with three shards each, and few sizes on any of them.
///
/// Insertion and removal take constant time. Guarded by the shard's lock.
final class SizeBins {
    private static final int GRANULE_SHIFT = Sizes.GRANULE_SHIFT;
    /// Sizes with a bin of their own, in granules: 1 MiB, the border between the small and the large arenas.
    private static final int EXACT = 1 << 11;
    private static final int EXACT_SHIFT = 11;
    private static final int STEP_SHIFT = 6;
    /// Up to 2^35 granules, 16 TiB in one block.
    private static final int DOUBLINGS = 24;
    private static final int BINS = EXACT + (DOUBLINGS << STEP_SHIFT);
    private static final int WORDS = (BINS + 63) >>> 6;
    /// Blocks looked at in one bin. Bounds the time of a search when many blocks have nearly the same size.
    private static final int SCAN = 16;
    /// Bins looked at. What is not found there, the search for windows finds.
    private static final int MAX_BINS = 32;

    /// The heads of bins that never had a block; never written.
    private static final int[] EMPTY = new int[64];

    static {
        Arrays.fill(EMPTY, Blocks.NONE);
    }

    private final Blocks blocks;
    private final int[][] heads = new int[WORDS][];
    private final long[] occupied = new long[WORDS];
    /// Bit w is set exactly if `occupied[w]` is not 0.
    private long summary;

    /// Blocks that came when the Java heap had no memory for the heads of their bin: a free must not fail for
    /// that. The next search enters them.
    private int unsorted = Blocks.NONE;

    SizeBins(Blocks blocks) {
        this.blocks = blocks;
        Arrays.fill(heads, EMPTY);
    }

    private int head(int bin) {
        return heads[bin >>> 6][bin & 63];
    }

    /// The bin for blocks of a size.
    static int binOf(long byteSize) {
        long granules = byteSize >>> GRANULE_SHIFT;
        if (granules <= EXACT) {
            return (int) granules - 1;
        }
        long below = granules - 1; // doublings end at powers of two, included
        int doubling = 63 - Long.numberOfLeadingZeros(below);
        int step = (int) (below >>> (doubling - STEP_SHIFT)) & ((1 << STEP_SHIFT) - 1);
        return EXACT + ((doubling - EXACT_SHIFT) << STEP_SHIFT) + step;
    }

    /// Adds a free block.
    ///
    /// @param gapBytes the bytes of the free run that it begins, at least its own
    void insert(int block, long gapBytes) {
        blocks.gapBytes[block] = gapBytes;
        int bin = binOf(gapBytes);
        if (tryMakeHeads(bin >>> 6)) {
            enter(block, bin);
        } else {
            blocks.link(block, unsorted);
            unsorted = block;
        }
    }

    private boolean tryMakeHeads(int word) {
        try {
            makeHeads(word);
            return true;
        } catch (OutOfMemoryError later) {
            return false;
        }
    }

    @SuppressWarnings("ReferenceEquality") // There is one array that is never written.
    private void makeHeads(int word) {
        if (heads[word] == EMPTY) {
            heads[word] = EMPTY.clone();
        }
    }

    private void sort() {
        while (unsorted != Blocks.NONE) {
            int block = unsorted;
            int bin = binOf(blocks.gapBytes[block]);
            makeHeads(bin >>> 6);
            blocks.unlink(block);
            unsorted = blocks.listNext[block];
            enter(block, bin);
        }
    }

    private void enter(int block, int bin) {
        int head = head(bin);
        blocks.link(block, head);
        if (head == Blocks.NONE) {
            markOccupied(bin);
        }
        heads[bin >>> 6][bin & 63] = block;
    }

    private void markOccupied(int bin) {
        int word = bin >>> 6;
        occupied[word] |= 1L << bin;
        summary |= 1L << word;
    }

    void remove(int block) {
        if (!blocks.unlink(block)) {
            return;
        }
        if (block == unsorted) {
            unsorted = blocks.listNext[block];
        } else {
            setHead(binOf(blocks.gapBytes[block]), blocks.listNext[block]);
        }
    }

    private void setHead(int bin, int block) {
        int word = bin >>> 6;
        heads[word][bin & 63] = block;
        if (block == Blocks.NONE) {
            occupied[word] &= ~(1L << bin);
            if (occupied[word] == 0) {
                summary &= ~(1L << word);
            }
        }
    }

    /// The free block to take for a request, still in its bin, or [Blocks#NONE].
    int bestFit(long byteSize) {
        int own = binOf(byteSize);
        int bin = nextOccupied(own);
        for (int seen = 0; bin >= 0 && seen < MAX_BINS; seen++, bin = nextOccupied(bin + 1)) {
            int found = bestIn(bin, byteSize, SCAN);
            if (found != Blocks.NONE) {
                return found;
            }
        }
        return bestIn(own, byteSize, Integer.MAX_VALUE);
    }

    private int bestIn(int bin, long byteSize, int scan) {
        int best = Blocks.NONE;
        long bestGap = Long.MAX_VALUE;
        int block = head(bin);
        for (int seen = 0; block != Blocks.NONE && seen < scan; seen++, block = blocks.listNext[block]) {
            long gap = blocks.gapBytes[block];
            if (blocks.byteSize[block] >= byteSize && (gap < bestGap || (gap == bestGap && lower(block, best)))) {
                if (bin < EXACT) {
                    return block;
                }
                best = block;
                bestGap = gap;
            }
        }
        return best;
    }

    private boolean lower(int block, int other) {
        return blocks.address[block] < blocks.address[other];
    }

    /// The first bin from one on that is not empty, or -1.
    int nextOccupied(int bin) {
        if (unsorted != Blocks.NONE) {
            sort();
        }
        if (bin >= BINS) {
            return -1;
        }
        int word = bin >>> 6;
        long here = occupied[word] & (-1L << bin);
        if (here == 0) {
            long above = word == 63 ? 0 : summary & (-1L << (word + 1));
            if (above == 0) {
                return -1;
            }
            word = Long.numberOfTrailingZeros(above);
            here = occupied[word];
        }
        return (word << 6) + Long.numberOfTrailingZeros(here);
    }

    /// Shows the blocks of a bin.
    ///
    /// @return whether any answer was yes
    boolean forEachIn(int bin, IntPredicate seen) {
        boolean any = false;
        for (int block = head(bin); block != Blocks.NONE; block = blocks.listNext[block]) {
            any |= seen.test(block);
        }
        return any;
    }

    /// The first block with a property among those whose free runs have a size or more, or [Blocks#NONE].
    int findFrom(long gapBytes, IntPredicate wanted) {
        for (int bin = nextOccupied(binOf(gapBytes)); bin >= 0; bin = nextOccupied(bin + 1)) {
            for (int block = head(bin); block != Blocks.NONE; block = blocks.listNext[block]) {
                if (wanted.test(block)) {
                    return block;
                }
            }
        }
        return Blocks.NONE;
    }

    /// Goes through the blocks whose free runs have a size or more.
    void forEachFrom(long gapBytes, IntConsumer action) {
        for (int bin = nextOccupied(binOf(gapBytes)); bin >= 0; bin = nextOccupied(bin + 1)) {
            for (int block = head(bin); block != Blocks.NONE; block = blocks.listNext[block]) {
                action.accept(block);
            }
        }
    }

    /// Checks lists and bitmaps against each other: every block listed is free and in the bin of its size.
    ///
    /// @return how many blocks are listed
    int checkInvariants() {
        sort();
        int count = 0;
        for (int bin = 0; bin < BINS; bin++) {
            boolean bit = (occupied[bin >>> 6] >>> bin & 1) != 0;
            Invariant.check(bit == (head(bin) != Blocks.NONE), "bit of bin", bin);
            Invariant.check(!bit || (summary >>> (bin >>> 6) & 1) != 0, "summary bit of bin", bin);
            int before = Blocks.NONE;
            for (int block = head(bin); block != Blocks.NONE; block = blocks.listNext[block]) {
                Invariant.check(FreeRuns.isGap(blocks.state[block]), "a listed block is in a free run", block);
                Invariant.check(binOf(blocks.gapBytes[block]) == bin, "a block is in the bin of its free run", block);
                Invariant.check(blocks.listPrevious[block] == before, "lists are linked both ways", block);
                before = block;
                count++;
            }
        }
        return count;
    }
}
