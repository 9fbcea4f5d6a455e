package io.cistern.caching;

import io.cistern.UnknownAddressException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The books of a shard: its regions, their blocks, and which of them are free, live or holes. Plain data,
/// guarded by the shard's lock.
///
/// **Invariants** ([#checkInvariants]): in every region the blocks tile its addresses; no two neighbours
/// are both free or both holes; exactly the free blocks are in the bins, each in the bin of its size;
/// exactly the live blocks are found by address; `mapped = live + free + fenced + claimed` bytes.
final class BlockHeap {
    final Blocks blocks = new Blocks();
    private final SizeBins bins;
    private final Holes holes = new Holes(blocks);
    private final List<Region> regions = new ArrayList<>();
    private final Cutting cutting;
    private final ShardCounters counters;

    BlockHeap(Cutting cutting, ShardCounters counters) {
        this.cutting = cutting;
        this.counters = counters;
        this.bins = new SizeBins(blocks, counters);
    }

    /// What a request that must grow its shard can have.
    sealed interface Room permits Found, Gap {}

    /// A block that fits after all, handed out: frees take no driver lock, so one came since the search that
    /// failed.
    record Found(long address) implements Room {}

    /// A hole and the free blocks beside it, claimed: mapping `mapBytes` at `address` makes room for a request.
    ///
    /// @param hole the hole; its start is where pages are missing
    /// @param before a claimed free block in front of it, or [Blocks#NONE]
    /// @param after a claimed free block behind it, or [Blocks#NONE]
    record Gap(PageArena arena, int hole, int before, int after, long address, long mapBytes) implements Room {}

    /// Takes a free block, whole or its first part.
    ///
    /// @return its address, or 0 if none fits
    long allocate(long byteSize) {
        int block = bins.bestFit(byteSize);
        if (block == Blocks.NONE || cutting.wastes(blocks.byteSize[block], byteSize)) {
            return 0;
        }
        bins.remove(block);
        return handOut(block, byteSize);
    }

    /// As [#allocate], also from a block that is worth more whole: nobody has anything else.
    long allocateFromAny(long byteSize) {
        int block = bins.bestFit(byteSize);
        if (block == Blocks.NONE) {
            return 0;
        }
        bins.remove(block);
        return handOut(block, byteSize);
    }

    /// Takes a block out of the live ones.
    ///
    /// @return the block, whose state is for the caller to set
    /// @throws UnknownAddressException if no live block starts there
    int retire(Region region, long address) {
        int block = liveAt(region, address);
        region.live.remove(address);
        counters.freed(blocks.byteSize[block]);
        return block;
    }

    /// The live block that starts at an address.
    ///
    /// @throws UnknownAddressException if none does
    int liveAt(Region region, long address) {
        int block = region.live.find(address);
        if (block == Blocks.NONE || blocks.address[block] != address) {
            throw new UnknownAddressException(address);
        }
        return block;
    }

    private long handOut(int block, long byteSize) {
        blocks.state[block] = Blocks.LIVE; // first, so that the rest does not join it again
        if (cutting.cuts(blocks.byteSize[block], byteSize)) {
            makeFree(blocks.split(block, byteSize));
        }
        long address = blocks.address[block];
        blocks.region[block].live.put(address, block);
        counters.allocated(blocks.byteSize[block]);
        return address;
    }

    /// Makes a block free, one with the free blocks beside it.
    void makeFree(int block) {
        int next = blocks.next[block];
        if (blocks.is(next, Blocks.FREE)) {
            bins.remove(next);
            blocks.absorbNext(block);
        }
        int previous = blocks.previous[block];
        if (blocks.is(previous, Blocks.FREE)) {
            bins.remove(previous);
            blocks.absorbNext(previous);
            block = previous;
        }
        blocks.state[block] = Blocks.FREE;
        bins.insert(block);
    }

    void addHole(PageArena arena) {
        regions.add(arena);
        holes.insert(blocks.add(arena, Blocks.HOLE));
    }

    long addAndAllocate(Region region, long byteSize) {
        bins.holdSegments();
        regions.add(region);
        return handOut(blocks.add(region, Blocks.CLAIMED), byteSize);
    }

    /// Searches once more, and claims a gap if that fails; so bytes are missing in every gap.
    @Nullable
    Room findOrClaimGap(long byteSize, long unit) {
        long address = allocate(byteSize);
        if (address != 0) {
            return new Found(address);
        }
        int hole = holes.fewestMissing(byteSize);
        return hole == Blocks.NONE ? null : claim(hole, holes.missingAt(hole, byteSize), unit);
    }

    private Gap claim(int hole, long missing, long unit) {
        holes.remove(hole);
        blocks.state[hole] = Blocks.CLAIMED;
        long mapBytes = Math.min(Sizes.roundUp(missing, unit), blocks.byteSize[hole]);
        int after = mapBytes == blocks.byteSize[hole] ? claimFree(blocks.next[hole]) : Blocks.NONE;
        int before = claimFree(blocks.previous[hole]);
        return new Gap((PageArena) blocks.region[hole], hole, before, after, blocks.address[hole], mapBytes);
    }

    private int claimFree(int block) {
        if (!blocks.is(block, Blocks.FREE)) {
            return Blocks.NONE;
        }
        bins.remove(block);
        blocks.state[block] = Blocks.CLAIMED;
        return block;
    }

    long fillAndAllocate(Gap gap, long byteSize) {
        int block = gap.hole;
        if (gap.mapBytes < blocks.byteSize[block]) {
            holes.insert(blocks.split(block, gap.mapBytes));
        }
        if (gap.after != Blocks.NONE) {
            blocks.absorbNext(block);
        }
        if (gap.before != Blocks.NONE) {
            blocks.absorbNext(gap.before);
            block = gap.before;
        }
        return handOut(block, byteSize);
    }

    void abandon(Gap gap) {
        holes.insert(gap.hole);
        if (gap.after != Blocks.NONE) {
            makeFree(gap.after);
        }
        if (gap.before != Blocks.NONE) {
            makeFree(gap.before);
        }
    }

    /// Claims what could go back to the driver, of the youngest regions first.
    int[] claimIdle(long wanted) {
        IntStream.Builder claimed = IntStream.builder();
        long left = wanted;
        for (int i = regions.size() - 1; i >= 0 && left > 0; i--) {
            left -= claimIdle(regions.get(i), left, claimed);
        }
        return claimed.build().toArray();
    }

    private long claimIdle(Region region, long wanted, IntStream.Builder claimed) {
        long bytes = 0;
        for (int block = region.firstBlock; block != Blocks.NONE && bytes < wanted; block = blocks.next[block]) {
            if (blocks.state[block] == Blocks.FREE) {
                long end = region.returnableEnd(blocks.address[block], blocks.end(block));
                long start = region.returnableStart(blocks.address[block], blocks.end(block), wanted - bytes);
                if (start < end) {
                    block = claimPart(block, start, end);
                    claimed.add(block);
                    bytes += end - start;
                }
            }
        }
        return bytes;
    }

    /// Claims idle segments that came to rest at least as long ago as the average one. Arenas are none.
    int[] claimAged(long wanted) {
        List<Region> idle = regions.stream().filter(this::isIdleSegment).toList();
        double average =
                idle.stream().mapToLong(region -> region.idleSince).average().orElse(0);
        IntStream.Builder claimed = IntStream.builder();
        long left = wanted;
        for (Region region : idle) {
            if (left > 0 && region.idleSince <= average) {
                left -= claimIdle(region, left, claimed);
            }
        }
        return claimed.build().toArray();
    }

    private boolean isIdleSegment(Region region) {
        return !region.keepsAddresses()
                && blocks.is(region.firstBlock, Blocks.FREE)
                && blocks.byteSize[region.firstBlock] == region.byteSize;
    }

    private int claimPart(int block, long start, long end) {
        bins.remove(block);
        if (end < blocks.end(block)) {
            bins.insert(blocks.split(block, end - blocks.address[block]));
        }
        int part = block;
        if (start > blocks.address[block]) {
            part = blocks.split(block, start - blocks.address[block]);
            bins.insert(block);
        }
        blocks.state[part] = Blocks.CLAIMED;
        return part;
    }

    /// A claimed block whose memory went back.
    void gaveBack(int block) {
        Region region = blocks.region[block];
        if (region.keepsAddresses()) {
            holes.publish(block);
        } else {
            blocks.remove(block);
            regions.remove(region);
        }
    }

    /// Takes the regions out of a heap without memory.
    ///
    /// @return the regions, or null if there is memory left, in use or not
    @Nullable
    List<Region> removeEmptyRegions() {
        if (!regions.stream().allMatch(this::isOneHole)) {
            return null;
        }
        List<Region> ended = List.copyOf(regions);
        ended.forEach(region -> holes.remove(region.firstBlock));
        regions.clear();
        return ended;
    }

    private boolean isOneHole(Region region) {
        return blocks.is(region.firstBlock, Blocks.HOLE) && blocks.next[region.firstBlock] == Blocks.NONE;
    }

    /// Whether a block of this size is live at an address.
    boolean isLive(long address, long byteSize) {
        for (Region region : regions) {
            if (address >= region.address && address < region.end()) {
                int block = region.live.find(address);
                return block != Blocks.NONE && blocks.address[block] == address && blocks.byteSize[block] == byteSize;
            }
        }
        return false;
    }

    /// What the shard has besides, for a survey of it.
    List<Region> regions() {
        return regions;
    }

    long largestFreeBytes() {
        return bins.largest();
    }

    /// Checks the invariants above.
    ///
    /// @return bytes that have memory
    /// @throws IllegalStateException if one does not hold
    long checkInvariants() {
        return new ShardCheck(blocks, regions)
                .check(
                        bins.checkInvariants(),
                        holes.count(),
                        counters.gauge(CacheStat.ALLOCATED_BYTES).current(),
                        counters.gauge(CacheStat.ALLOCATION).current());
    }
}
