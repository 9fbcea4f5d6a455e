package io.cistern.caching.internal.heap;

import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.Sizes;
import java.util.Arrays;
import java.util.function.IntPredicate;

/// Sorts free blocks by the size of the [free run][FreeRuns] that they begin (mostly their own size): one list
/// per bin, with a bitmap in two levels above the lists.
///
/// ```
/// bin      0 … 2047      2048 … 2111      2112 … 2175      …
/// holds    1 … 2048      (1, 2] MiB       (2, 4] MiB       …
///          granules      in 64 steps      in 64 steps
/// ```
///
/// 1. Each size up to 1 MiB has a bin of its own, so the first block of the first non-empty bin is the best fit.
/// 2. Above that, the sizes in a bin differ by less than 1/64. Some blocks of a request's own bin may be too small: the
///    search looks at up to [#SCAN] of them and takes the smallest that fits, at the lowest address among equals.
/// 3. If none fits, the bitmaps lead to the next non-empty bin; there the search again takes the smallest of
///    the first [#SCAN]. A block may be shorter than its free run and not fit; then the search goes on to the
///    next bin, up to [#MAX_BINS]. Before it fails, it looks at all blocks of the request's own bin.
///
/// The heads of 64 lists stand side by side, one for each bit of a word. They are made when one of these lists
/// first gets a block: a program may have thousands of streams, each with two shards that use few sizes.
///
/// Insertion and removal take constant time. Guarded by the shard's lock.
final class SizeBins {
    /// The number of sizes with a bin of their own, in granules: up to 1 MiB.
    private static final int EXACT = 1 << 11;
    private static final int EXACT_SHIFT = 11;
    private static final int STEP_SHIFT = 6;
    /// A block may have up to 2^35 granules (16 TiB).
    private static final int DOUBLINGS = 24;
    private static final int BINS = EXACT + (DOUBLINGS << STEP_SHIFT);
    private static final int WORDS = (BINS + 63) >>> 6;
    /// Blocks to look at in one bin. Bounds the time of a search when many blocks have nearly the same size.
    private static final int SCAN = 16;
    /// Bins to look at. Blocks beyond them are found by the search for windows.
    private static final int MAX_BINS = 32;

    /// Stands for the heads of bins that never had a block; never written.
    private static final int[] EMPTY = new int[64];

    static {
        Arrays.fill(EMPTY, Blocks.NONE);
    }

    private final Blocks blocks;
    private final int[][] heads = new int[WORDS][];
    private final long[] occupied = new long[WORDS];
    /// Bit w is set exactly if `occupied[w]` is not 0.
    private long summary;

    /// Blocks that became free when the Java heap had no memory for the heads of their bin: a free must not
    /// fail for that. The next search puts them into their bins.
    private int unsorted = Blocks.NONE;

    SizeBins(Blocks blocks) {
        this.blocks = blocks;
        Arrays.fill(heads, EMPTY);
    }

    private int head(int bin) {
        return heads[bin >>> 6][bin & 63];
    }

    static int binOf(long byteSize) {
        long granules = byteSize >>> Sizes.GRANULE_SHIFT;
        if (granules <= EXACT) {
            return (int) granules - 1;
        }
        long below = granules - 1; // doublings end at powers of two, included
        int doubling = 63 - Long.numberOfLeadingZeros(below);
        int step = (int) (below >>> (doubling - STEP_SHIFT)) & ((1 << STEP_SHIFT) - 1);
        return EXACT + ((doubling - EXACT_SHIFT) << STEP_SHIFT) + step;
    }

    /// @param runBytes the bytes of the free run that it begins, at least its own
    void insert(int block, long runBytes) {
        blocks.runBytes[block] = runBytes;
        int bin = binOf(runBytes);
        try {
            makeHeads(bin >>> 6);
            enter(block, bin);
        } catch (OutOfMemoryError later) {
            blocks.link(block, unsorted);
            unsorted = block;
        }
    }

    @SuppressWarnings("ReferenceEquality") // there is one array that is never written
    private void makeHeads(int word) {
        if (heads[word] == EMPTY) {
            heads[word] = EMPTY.clone();
        }
    }

    private void sort() {
        while (unsorted != Blocks.NONE) {
            int block = unsorted;
            int bin = binOf(blocks.runBytes[block]);
            makeHeads(bin >>> 6);
            blocks.unlink(block);
            unsorted = blocks.listNext[block];
            enter(block, bin);
        }
    }

    private void enter(int block, int bin) {
        int head = head(bin);
        int word = bin >>> 6;
        blocks.link(block, head);
        if (head == Blocks.NONE) {
            occupied[word] |= 1L << bin;
            summary |= 1L << word;
        }
        heads[word][bin & 63] = block;
    }

    void remove(int block) {
        if (!blocks.unlink(block)) {
            return;
        }
        int after = blocks.listNext[block];
        if (block == unsorted) {
            unsorted = after;
            return;
        }
        int bin = binOf(blocks.runBytes[block]);
        int word = bin >>> 6;
        heads[word][bin & 63] = after;
        if (after == Blocks.NONE) {
            occupied[word] &= ~(1L << bin);
            if (occupied[word] == 0) {
                summary &= ~(1L << word);
            }
        }
    }

    /// Returns the free block to take for a request, or [Blocks#NONE]. The block stays in its bin.
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
        long bestRun = Long.MAX_VALUE;
        int block = head(bin);
        for (int seen = 0; block != Blocks.NONE && seen < scan; seen++, block = blocks.listNext[block]) {
            long run = blocks.runBytes[block];
            if (blocks.byteSize[block] >= byteSize
                    && (run < bestRun || (run == bestRun && blocks.address[block] < blocks.address[best]))) {
                if (bin < EXACT) {
                    return block;
                }
                best = block;
                bestRun = run;
            }
        }
        return best;
    }

    /// Returns the first non-empty bin from `bin` on, or -1.
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

    /// Visits the blocks of a bin; returns whether `seen` returned true for any of them.
    boolean forEachIn(int bin, IntPredicate seen) {
        boolean any = false;
        for (int block = head(bin); block != Blocks.NONE; block = blocks.listNext[block]) {
            any |= seen.test(block);
        }
        return any;
    }

    /// Returns the first block that `wanted` accepts, of those whose free runs have `runBytes` or
    /// more; or [Blocks#NONE].
    int findFrom(long runBytes, IntPredicate wanted) {
        for (int bin = nextOccupied(binOf(runBytes)); bin >= 0; bin = nextOccupied(bin + 1)) {
            for (int block = head(bin); block != Blocks.NONE; block = blocks.listNext[block]) {
                if (wanted.test(block)) {
                    return block;
                }
            }
        }
        return Blocks.NONE;
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
                Invariant.check(FreeRuns.isInRun(blocks.state[block]), "a listed block is in a free run", block);
                Invariant.check(binOf(blocks.runBytes[block]) == bin, "a block is in the bin of its free run", block);
                Invariant.check(blocks.listPrevious[block] == before, "lists are linked both ways", block);
                before = block;
                count++;
            }
        }
        return count;
    }
}
