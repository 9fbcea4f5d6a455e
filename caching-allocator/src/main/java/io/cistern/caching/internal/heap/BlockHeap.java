package io.cistern.caching.internal.heap;

import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.errors.UnknownAddressException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Keeps a shard's address ranges, their blocks, and which blocks are free, live or holes. Plain data, guarded
/// by the shard's lock.
///
/// **Invariants** (`ShardCheck`): in every range the blocks tile its addresses; no two neighbours are both free
/// or both holes; each free run is in the bin of its size by its first block, and its other free blocks are
/// in one list; exactly the live blocks are found by address; `mapped = live + free + fenced + claimed` bytes.
public final class BlockHeap {
    public final Blocks blocks;
    public final FreeRuns freeRuns;
    public final List<AddressRange> ranges = new ArrayList<>();
    private final SplitPolicy splitPolicy;
    private final ShardCounters counters;
    private final SmallerRuns smallerRuns;
    /// The size of the last search that failed, if no block became free since; else 0.
    private long missedBytes;

    /// @param smallerRuns consulted where there are aliased blocks
    public BlockHeap(
            Blocks blocks,
            SplitPolicy splitPolicy,
            FreeBlockObserver observer,
            SmallerRuns smallerRuns,
            ShardCounters counters) {
        this.blocks = blocks;
        this.splitPolicy = splitPolicy;
        this.smallerRuns = smallerRuns;
        this.counters = counters;
        this.freeRuns = new FreeRuns(blocks, counters, observer);
    }

    /// Allocates from the start of the best free block.
    ///
    /// @return its address; 0 if none fits, or a smaller free run can serve once pages come back to it; negative if
    ///     all these pages are of this stream
    public long allocate(long byteSize) {
        int block = freeRuns.bins.bestFit(byteSize);
        if (freeRuns.aliases > 0) {
            block = smallerRuns.best(freeRuns, block, byteSize);
        }
        if (block < 0 || splitPolicy.wastes(blocks.byteSize[block], byteSize)) {
            missedBytes = byteSize;
            return block == SmallerRuns.OWN_PAGES ? SmallerRuns.OWN_PAGES : 0;
        }
        return handOut(block, byteSize);
    }

    /// Allocates from the smallest free block that fits, wherever it lies: no other memory is left. A block that
    /// should be kept whole is taken only if it can't go back to the driver instead.
    ///
    /// @param takesWhole whether such a block is taken in any case, because no memory is given back
    /// @return its address, or 0 if none fits
    public long allocateFromAny(long byteSize, boolean takesWhole) {
        int block = freeRuns.smallest(
                byteSize,
                each -> takesWhole
                        || !splitPolicy.wastes(blocks.byteSize[each], byteSize)
                        || blocks.range[each].lastReturnable(blocks.address[each], blocks.end(each)) == null);
        return block == Blocks.NONE ? 0 : handOut(block, byteSize);
    }

    /// Removes a block from the live index.
    ///
    /// @return the block; the caller sets its state
    /// @throws UnknownAddressException if no live block starts there
    public int retire(AddressRange range, long address) {
        int block = liveAt(range, address);
        range.live.remove(blocks, block);
        counters.freed(blocks.byteSize[block]);
        return block;
    }

    /// Returns the live block that starts at an address.
    ///
    /// @throws UnknownAddressException if none does
    public int liveAt(AddressRange range, long address) {
        int block = range.live.find(blocks, address);
        if (block == Blocks.NONE) {
            throw new UnknownAddressException(address);
        }
        return block;
    }

    /// Hands out a free block, or the start of it.
    private long handOut(int block, long byteSize) {
        reserve(block, 1);
        long available = blocks.byteSize[block];
        freeRuns.take(block, splitPolicy.cuts(available, byteSize) ? byteSize : available);
        return live(block);
    }

    /// Reserves Java heap for a block to become live and for `more` other blocks, before anything changes.
    public void reserve(int block, int more) {
        blocks.reserve(more);
        blocks.range[block].live.reserve(blocks.address[block]);
    }

    private long live(int block) {
        blocks.state[block] = Blocks.LIVE;
        long address = blocks.address[block];
        blocks.range[block].live.put(blocks, block);
        counters.allocated(blocks.byteSize[block]);
        return address;
    }

    /// Makes a block free and merges it with free neighbours.
    public void makeFree(int block) {
        missedBytes = 0;
        freeRuns.add(block, Blocks.FREE);
    }

    /// Makes a claimed block free again that was not used meanwhile.
    public void restore(int block) {
        missedBytes = 0;
        freeRuns.add(block, Blocks.FREE, false);
    }

    public void addHole(AddressRange range) {
        blocks.reserve(1);
        ranges.add(range);
        freeRuns.add(blocks.add(range, Blocks.CLAIMED), Blocks.HOLE);
    }

    public long addAndAllocate(AddressRange range, long byteSize) {
        blocks.reserve(2);
        range.live.reserve(range.address);
        ranges.add(range);
        freeRuns.inSegments = true;
        int block = blocks.add(range, Blocks.CLAIMED);
        makeFree(block);
        return handOut(block, byteSize);
    }

    /// Like [#allocate], but returns 0 at once if the last search for this size failed and no block became free since.
    public long allocateAfterMiss(long byteSize) {
        return byteSize == missedBytes ? 0 : Math.max(0, allocate(byteSize));
    }

    /// Merges neighbouring claimed blocks, whose bytes have memory up to `end`, and allocates from the result.
    /// The Java heap for it was [reserved][#reserve] before.
    ///
    /// @return the block's address
    public long fillAndAllocate(int first, int count, long end, long byteSize) {
        for (int i = 1; i < count; i++) {
            blocks.absorbNext(first);
        }
        if (end < blocks.end(first)) {
            freeRuns.add(blocks.split(first, end - blocks.address[first]), Blocks.HOLE);
        }
        if (byteSize < blocks.byteSize[first]) {
            makeFree(blocks.split(first, byteSize)); // new stamp: later fences follow the awaited ones
        }
        return live(first);
    }

    /// Claims blocks that can go back to the driver, of the youngest ranges first.
    ///
    /// @param claimed receives the blocks, including those claimed before a failure
    public void claimIdle(long wanted, ClaimedBlocks claimed) {
        long left = wanted;
        for (int block : freeBlocks()) {
            if (left <= 0) {
                break;
            }
            left -= claimIdle(block, left, claimed);
        }
    }

    /// Returns the free blocks, those of the youngest range first, by address in each range. It does not walk
    /// over live blocks: there may be a million.
    private int[] freeBlocks() {
        IntStream.Builder free = IntStream.builder();
        freeRuns.forEachFree(0, free);
        IdentityHashMap<AddressRange, Integer> order = new IdentityHashMap<>();
        for (AddressRange range : ranges) {
            order.put(range, -order.size());
        }
        return free.build()
                .boxed()
                .sorted(Comparator.comparingInt((Integer block) -> order.get(blocks.range[block]))
                        .thenComparingLong(block -> blocks.address[block]))
                .mapToInt(Integer::intValue)
                .toArray();
    }

    private long claimIdle(int block, long wanted, ClaimedBlocks claimed) {
        long bytes = 0;
        while (bytes < wanted && blocks.state[block] == Blocks.FREE) {
            AddressRange.Range range = blocks.range[block].lastReturnable(blocks.address[block], blocks.end(block));
            if (range == null) {
                break;
            }
            claimed.add(claimPart(block, range.from(), range.to()));
            bytes += range.to() - range.from();
        }
        return bytes;
    }

    /// Claims a part of a free block or a hole; the rest keeps its state.
    ///
    /// @return the claimed part
    public int claimPart(int block, long start, long end) {
        blocks.reserve(2);
        byte state = blocks.state[block];
        freeRuns.claim(block, block);
        int part = block;
        if (start > blocks.address[block]) {
            part = blocks.split(block, start - blocks.address[block]);
            freeRuns.add(block, state, false);
        }
        if (end < blocks.end(part)) {
            freeRuns.add(blocks.split(part, end - blocks.address[part]), state, false);
        }
        return part;
    }

    /// Claims an aliased block, or a retired one that still has its mapping.
    public void claim(int block) {
        if (blocks.state[block] == Blocks.ALIASED) {
            freeRuns.claim(block, block);
        }
        blocks.state[block] = Blocks.CLAIMED;
    }

    /// Gives a claimed block its former state.
    public void unclaim(int block, byte state) {
        missedBytes = 0;
        freeRuns.add(block, state);
    }

    /// Makes the first `count` claimed blocks free.
    public void unclaim(int[] claimed, int count) {
        for (int i = 0; i < count; i++) {
            restore(claimed[i]);
        }
    }

    /// Records that a claimed block has no memory any more.
    public void gaveBack(int block) {
        AddressRange range = blocks.range[block];
        if (!range.reusesAddresses() && range.keepsAddresses()) {
            blocks.state[block] = Blocks.RETIRED;
        } else if (range.keepsAddresses()) {
            freeRuns.add(block, Blocks.HOLE);
        } else {
            blocks.remove(block);
            ranges.remove(range);
        }
    }

    /// Retires a part of a hole: its addresses are not used again.
    ///
    /// @return the retired block
    public int spend(AddressRange range, long from, long to) {
        int block = range.firstBlock;
        while (blocks.end(block) <= from) {
            block = blocks.next[block];
        }
        int spent = claimPart(block, from, to);
        blocks.state[spent] = Blocks.RETIRED;
        return spent;
    }

    /// Removes all ranges, if no block of this heap has memory.
    ///
    /// @return the ranges, or null if a mapping is left, in use or not
    @Nullable
    public List<AddressRange> removeEmptyRegions() {
        if (!ranges.stream().allMatch(this::isEmpty)) {
            return null;
        }
        List<AddressRange> ended = List.copyOf(ranges);
        ended.forEach(this::removeBlocks);
        ranges.clear();
        return ended;
    }

    private boolean isEmpty(AddressRange range) {
        for (int block = range.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
            if (blocks.state[block] != Blocks.HOLE && blocks.state[block] != Blocks.RETIRED) {
                return false;
            }
        }
        return true;
    }

    private void removeBlocks(AddressRange range) {
        for (int block = range.firstBlock; block != Blocks.NONE; ) {
            int next = blocks.next[block];
            if (blocks.state[block] == Blocks.HOLE) {
                freeRuns.claim(block, block);
            }
            blocks.remove(block);
            block = next;
        }
    }

    /// Whether a live block of this size starts at an address.
    public boolean isLive(long address, long byteSize) {
        for (AddressRange range : ranges) {
            if (address >= range.address && address < range.end()) {
                int block = range.live.find(blocks, address);
                return block != Blocks.NONE && blocks.byteSize[block] == byteSize;
            }
        }
        return false;
    }

    public long largestFreeBytes() {
        long[] largest = {0};
        freeRuns.forEachFree(0, block -> largest[0] = Math.max(largest[0], blocks.byteSize[block]));
        return largest[0];
    }
}
