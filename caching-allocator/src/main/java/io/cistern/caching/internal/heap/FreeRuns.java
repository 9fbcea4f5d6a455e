package io.cistern.caching.internal.heap;

import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.base.Sizes;
import java.util.function.IntConsumer;
import java.util.function.IntPredicate;

/// Finds free runs: the longest runs of neighbouring free blocks, holes and aliased blocks between other blocks.
///
/// ```
/// | live | free | aliased | hole | fenced | free | live | aliased | free | claimed |
///        └──────  free run  ───────┘        └ free run ─┘      └──── free run ────┘
///          first          last          both           first  last
/// ```
///
/// 1. [Blocks#runEnd] leads from a free run's first block to its last and back. So freeing a block finds the
///    ends of the free run around it in constant time.
/// 2. A free block that begins a free run is in a [bin][SizeBins], by the size of the free run. A request is
///    placed at the start of the smallest free run that begins with enough free bytes. So live blocks stay
///    together at one side, and the rest of the run is available in one piece, with pages from elsewhere. (If
///    blocks were binned by their own size, requests would be scattered over the free runs, and a workload that
///    repeats would reach a steady state late or never.)
/// 3. Where blocks are aliased, [smaller runs][SmallerRuns] that need pages back come first.
/// 4. Other free blocks are in one list, for searches for idle pages.
///
/// If no page was ever aliased, a free run has free blocks and holes only.
///
/// Guarded by the shard's lock.
public final class FreeRuns {
    final SizeBins bins;
    /// The free runs that begin with a hole or an aliased block, by their first block.
    private final SizeBins others;

    private final Blocks blocks;
    private final FreeBlockObserver observer;
    private final ShardCounters counters;
    /// Whether blocks lie in plain segments. Free parts of segments are counted, because they can't go back to
    /// the driver.
    boolean inSegments;
    private int inner = Blocks.NONE;
    /// The number of aliased blocks. Without any, a free run has one free block at most, and holes.
    public int aliases;

    FreeRuns(Blocks blocks, ShardCounters counters, FreeBlockObserver observer) {
        this.blocks = blocks;
        this.observer = observer;
        this.counters = counters;
        this.bins = new SizeBins(blocks);
        this.others = new SizeBins(blocks);
    }

    private boolean inRun(int block) {
        return block != Blocks.NONE && isInRun(blocks.state[block]);
    }

    static boolean isInRun(byte state) {
        return state == Blocks.FREE || state == Blocks.HOLE || state == Blocks.ALIASED;
    }

    /// Takes a free block, or its start, out of its free run.
    void take(int block, long byteSize) {
        if (inRun(blocks.previous[block])) {
            takeInner(block, byteSize);
        } else {
            takeFirst(block, byteSize);
        }
    }

    private void takeInner(int block, long byteSize) {
        claim(block, block);
        observer.served();
        if (byteSize < blocks.byteSize[block]) {
            add(blocks.split(block, byteSize), Blocks.FREE, false);
        }
    }

    private void takeFirst(int block, long byteSize) {
        unlistFirst(block);
        observer.taken(block, blocks.address[block] + byteSize);
        observer.served();
        int last = blocks.runEnd[block];
        blocks.state[block] = Blocks.CLAIMED;
        if (byteSize < blocks.byteSize[block]) {
            int rest = blocks.split(block, byteSize);
            blocks.state[rest] = Blocks.FREE;
            form(rest, last == block ? rest : last);
        } else if (last != block) {
            form(blocks.next[block], last);
        }
    }

    /// Gives a block that is in no free run a state, and merges free blocks and holes with neighbours of the
    /// same state. A retired block joins no free run.
    void add(int block, byte state) {
        add(block, state, true);
    }

    /// @param anew as in [FreeBlockObserver#freed]
    void add(int block, byte state, boolean anew) {
        blocks.state[block] = state;
        if (!isInRun(state)) {
            return;
        }
        boolean merges = state != Blocks.ALIASED;
        aliases += merges ? 0 : 1;
        long from = blocks.address[block];
        long to = blocks.end(block);
        int before = blocks.previous[block];
        int after = blocks.next[block];
        int first = block;
        int last = block;
        int free = block;
        if (inRun(before)) {
            first = blocks.runEnd[before];
            unlistFirst(first);
        }
        if (inRun(after)) {
            last = blocks.runEnd[after];
            unlistFirst(after);
            if (merges && blocks.state[after] == state) {
                blocks.absorbNext(block);
                last = last == after ? block : last;
            } else if (blocks.state[after] == Blocks.FREE) {
                enlist(after);
            }
        }
        if (merges && inRun(before) && blocks.state[before] == state) {
            blocks.absorbNext(before);
            free = before;
            last = last == block ? before : last;
        } else if (first != block && state == Blocks.FREE) {
            enlist(block);
        }
        form(first, last);
        if (state == Blocks.FREE) {
            observer.freed(free, from, to, anew);
        }
    }

    /// Takes neighbouring blocks out of their free run and claims them. The remainders on both sides become
    /// free runs.
    public void claim(int from, int to) {
        int first = from;
        while (inRun(blocks.previous[first])) {
            first = blocks.previous[first];
        }
        claim(first, from, to);
    }

    /// Like [#claim(int, int)], for a caller that knows the free run's first block.
    public void claim(int first, int from, int to) {
        int last = blocks.runEnd[first];
        unlistFirst(first);
        int before = blocks.previous[from];
        int after = blocks.next[to];
        for (int block = from; block != after; block = blocks.next[block]) {
            if (blocks.state[block] == Blocks.FREE) {
                observer.taken(block, blocks.end(block));
                if (block != first) {
                    unlist(block);
                }
            }
            aliases -= blocks.state[block] == Blocks.ALIASED ? 1 : 0;
            blocks.state[block] = Blocks.CLAIMED;
        }
        if (from != first) {
            form(first, before);
        }
        if (to != last) {
            if (blocks.state[after] == Blocks.FREE) {
                unlist(after);
            }
            form(after, last);
        }
    }

    /// Makes a part of a free block aliased. The free run keeps its ends.
    ///
    /// @return the part
    public int alias(int block, long from, long to) {
        boolean begins = !inRun(blocks.previous[block]);
        boolean ends = !inRun(blocks.next[block]);
        int first = ends ? blocks.runEnd[block] : Blocks.NONE;
        if (begins) {
            bins.remove(block);
        } else {
            unlist(block);
        }
        int part = from > blocks.address[block] ? blocks.split(block, from - blocks.address[block]) : block;
        int rest = to < blocks.end(part) ? blocks.split(part, to - blocks.address[part]) : Blocks.NONE;
        observer.taken(part, to);
        aliases++;
        blocks.state[part] = Blocks.ALIASED;
        if (begins) {
            binsOf(block).insert(block, blocks.runBytes[block]);
        } else if (part != block) {
            enlist(block);
        }
        if (rest != Blocks.NONE) {
            enlist(rest);
        }
        if (ends) {
            int last = rest == Blocks.NONE ? part : rest;
            blocks.runEnd[first] = last;
            blocks.runEnd[last] = first;
        }
        return part;
    }

    private void form(int first, int last) {
        blocks.runEnd[first] = last;
        blocks.runEnd[last] = first;
        binsOf(first).insert(first, blocks.end(last) - blocks.address[first]);
        if (inSegments && !isWholeSegment(first)) {
            counters.pieceFreed(blocks.byteSize[first]);
        }
    }

    private boolean isWholeSegment(int block) {
        return blocks.byteSize[block] == blocks.range[block].byteSize;
    }

    private void unlistFirst(int first) {
        if (inSegments && !isWholeSegment(first)) {
            counters.pieceTaken(blocks.byteSize[first]);
        }
        binsOf(first).remove(first);
    }

    private SizeBins binsOf(int first) {
        return blocks.state[first] == Blocks.FREE ? bins : others;
    }

    /// Visits the free runs of about `byteSize` to about `most`, smaller ones first.
    ///
    /// @param seen receives the first block of each free run; returns whether to stop after the current bin
    public void forEachRun(long byteSize, long most, IntPredicate seen) {
        int bin = SizeBins.binOf(byteSize);
        int last = SizeBins.binOf(most);
        boolean enough = false;
        while (!enough) {
            int next = bins.nextOccupied(bin);
            int other = others.nextOccupied(bin);
            if (next < 0 && other < 0) {
                return;
            }
            bin = next < 0 || (other >= 0 && other < next) ? other : next;
            if (bin > last) {
                return;
            }
            enough = bins.forEachIn(bin, seen);
            enough |= others.forEachIn(bin, seen);
            bin++;
        }
    }

    private void enlist(int block) {
        blocks.link(block, inner);
        inner = block;
    }

    private void unlist(int block) {
        if (blocks.unlink(block)) {
            inner = blocks.listNext[block];
        }
    }

    /// Visits the free blocks of `byteSize` and more.
    public void forEachFree(long byteSize, IntConsumer action) {
        IntPredicate seen = block -> {
            if (blocks.byteSize[block] >= byteSize) {
                action.accept(block);
            }
            return false; // go on
        };
        int _ = bins.findFrom(Math.max(byteSize, Sizes.GRANULE), seen);
        for (int block = inner; block != Blocks.NONE; block = blocks.listNext[block]) {
            boolean _ = seen.test(block);
        }
    }

    /// Returns the smallest free block that fits and that `wanted` accepts, wherever it lies in its free run; or
    /// [Blocks#NONE]. Of equals, the one at the lowest address. Looks at all free blocks of `byteSize` and more.
    int smallest(long byteSize, IntPredicate wanted) {
        int[] smallest = {Blocks.NONE};
        forEachFree(byteSize, block -> {
            if (isSmaller(block, smallest[0]) && wanted.test(block)) {
                smallest[0] = block;
            }
        });
        return smallest[0];
    }

    private boolean isSmaller(int block, int than) {
        if (than == Blocks.NONE) {
            return true;
        }
        long more = blocks.byteSize[than] - blocks.byteSize[block];
        return more > 0 || (more == 0 && blocks.address[block] < blocks.address[than]);
    }

    /// Returns the free block around a part of an address range, or [Blocks#NONE].
    public int findFree(AddressRange in, long from, long to) {
        for (int block = inner; block != Blocks.NONE; block = blocks.listNext[block]) {
            if (blocks.isAround(block, in, from, to)) {
                return block;
            }
        }
        return bins.findFrom(to - from, block -> blocks.isAround(block, in, from, to));
    }

    /// Checks the lists; returns the number of free blocks in them.
    public int checkInvariants() {
        int count = bins.checkInvariants();
        others.checkInvariants();
        int before = Blocks.NONE;
        for (int block = inner; block != Blocks.NONE; block = blocks.listNext[block]) {
            Invariant.check(blocks.state[block] == Blocks.FREE, "a listed block is free", block);
            Invariant.check(inRun(blocks.previous[block]), "a listed block does not begin its free run", block);
            Invariant.check(blocks.listPrevious[block] == before, "the list is linked both ways", block);
            before = block;
            count++;
        }
        return count;
    }

    /// Checks the free run that a block begins, if it begins one.
    public void check(int block) {
        if (!inRun(block) || inRun(blocks.previous[block])) {
            return;
        }
        int last = block;
        while (inRun(blocks.next[last])) {
            last = blocks.next[last];
        }
        long address = blocks.address[block];
        Invariant.check(blocks.runEnd[block] == last, "a free run's first block leads to its last", address);
        Invariant.check(blocks.runEnd[last] == block, "a free run's last block leads to its first", address);
        Invariant.check(
                blocks.runBytes[block] == blocks.end(last) - address,
                "a free run's first block records its size",
                address);
    }
}
