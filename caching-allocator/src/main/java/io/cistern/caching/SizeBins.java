package io.cistern.caching;

import java.util.Arrays;

/// Free blocks by size: an array of lists with a bitmap in two levels above it.
///
/// ```
/// bin      0 … 2047      2048 … 2111      2112 … 2175      …
/// holds    1 … 2048      (1, 2] MiB       (2, 4] MiB       …
///          granules      in 64 steps      in 64 steps
/// ```
///
/// 1. A size up to 1 MiB has a bin of its own, so the first block of the first bin that is not empty is the best
/// fit.
/// 2. Above, a bin holds sizes that differ by less than 1/64. In a request's own bin, some blocks may be too small:
///    up to [#SCAN] of them are looked at and the smallest that fits is taken, the lowest address among equals.
/// 3. If none fits, the bitmaps lead to the next bin that is not empty, all of whose blocks fit; again the smallest
/// of the first [#SCAN]. Only if there is no such bin, all of the request's own is looked at before the search
/// fails.
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
    /// Blocks looked at in one bin. Bounds the time of a search when many blocks have nearly the same size.
    private static final int SCAN = 16;

    private final Blocks blocks;
    private final ShardCounters counters;
    private final int[] heads = new int[BINS];
    private final long[] occupied = new long[(BINS + 63) >>> 6];
    /// Bit w is set exactly if `occupied[w]` is not 0.
    private long summary;
    private boolean segments;
    /// Searches so far: the clock by which idle regions age.
    private long searches;

    SizeBins(Blocks blocks, ShardCounters counters) {
        this.blocks = blocks;
        this.counters = counters;
        Arrays.fill(heads, Blocks.NONE);
    }

    /// Blocks lie in plain segments, whose free parts are counted, and which age while they are wholly free.
    void holdSegments() {
        segments = true;
    }

    private void count(int block, long byteSize) {
        if (byteSize == blocks.region[block].byteSize) {
            blocks.region[block].idleSince = searches;
        } else {
            counters.pieceFreed(byteSize);
        }
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

    void insert(int block) {
        long byteSize = blocks.byteSize[block];
        if (segments) {
            count(block, byteSize);
        }
        int bin = binOf(byteSize);
        int head = heads[bin];
        blocks.listPrevious[block] = Blocks.NONE;
        blocks.listNext[block] = head;
        if (head != Blocks.NONE) {
            blocks.listPrevious[head] = block;
        } else {
            occupied[bin >>> 6] |= 1L << bin;
            summary |= 1L << (bin >>> 6);
        }
        heads[bin] = block;
    }

    void remove(int block) {
        if (segments && blocks.byteSize[block] != blocks.region[block].byteSize) {
            counters.pieceTaken(blocks.byteSize[block]);
        }
        int before = blocks.listPrevious[block];
        int after = blocks.listNext[block];
        if (after != Blocks.NONE) {
            blocks.listPrevious[after] = before;
        }
        if (before != Blocks.NONE) {
            blocks.listNext[before] = after;
        } else {
            setHead(binOf(blocks.byteSize[block]), after);
        }
    }

    private void setHead(int bin, int block) {
        heads[bin] = block;
        if (block == Blocks.NONE) {
            int word = bin >>> 6;
            occupied[word] &= ~(1L << bin);
            if (occupied[word] == 0) {
                summary &= ~(1L << word);
            }
        }
    }

    /// The free block to take for a request, still in its bin, or [Blocks#NONE].
    int bestFit(long byteSize) {
        searches++;
        int bin = nextOccupied(binOf(byteSize));
        if (bin < 0) {
            return Blocks.NONE;
        }
        int found = bestIn(bin, byteSize, SCAN);
        if (found != Blocks.NONE) {
            return found;
        }
        int larger = nextOccupied(bin + 1);
        return larger < 0 ? bestIn(bin, byteSize, Integer.MAX_VALUE) : bestIn(larger, byteSize, SCAN);
    }

    private int bestIn(int bin, long byteSize, int scan) {
        if (bin < EXACT) {
            return heads[bin];
        }
        int best = Blocks.NONE;
        long bestSize = Long.MAX_VALUE;
        int block = heads[bin];
        for (int seen = 0; block != Blocks.NONE && seen < scan; seen++, block = blocks.listNext[block]) {
            long size = blocks.byteSize[block];
            if (size >= byteSize && (size < bestSize || (size == bestSize && lower(block, best)))) {
                best = block;
                bestSize = size;
            }
        }
        return best;
    }

    private boolean lower(int block, int other) {
        return blocks.address[block] < blocks.address[other];
    }

    private int nextOccupied(int bin) {
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

    /// The size of the largest block, or 0.
    long largest() {
        if (summary == 0) {
            return 0;
        }
        int word = 63 - Long.numberOfLeadingZeros(summary);
        int bin = (word << 6) + 63 - Long.numberOfLeadingZeros(occupied[word]);
        long largest = 0;
        for (int block = heads[bin]; block != Blocks.NONE; block = blocks.listNext[block]) {
            largest = Math.max(largest, blocks.byteSize[block]);
        }
        return largest;
    }

    /// Checks lists and bitmaps against each other: every block listed is free and in the bin of its size.
    ///
    /// @return how many blocks are listed
    int checkInvariants() {
        int count = 0;
        for (int bin = 0; bin < BINS; bin++) {
            boolean bit = (occupied[bin >>> 6] >>> bin & 1) != 0;
            Invariant.check(bit == (heads[bin] != Blocks.NONE), "bit of bin", bin);
            Invariant.check(!bit || (summary >>> (bin >>> 6) & 1) != 0, "summary bit of bin", bin);
            int before = Blocks.NONE;
            for (int block = heads[bin]; block != Blocks.NONE; block = blocks.listNext[block]) {
                Invariant.check(blocks.state[block] == Blocks.FREE, "a listed block is free", block);
                Invariant.check(binOf(blocks.byteSize[block]) == bin, "a block is in the bin of its size", block);
                Invariant.check(blocks.listPrevious[block] == before, "lists are linked both ways", block);
                before = block;
                count++;
            }
        }
        return count;
    }
}
