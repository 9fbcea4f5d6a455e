package io.cistern.caching;

import io.cistern.errors.UnknownAddressException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Objects;
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
    final IdleMarks marks;
    private final FreeRuns freeRuns;
    private final WindowSearch search = new WindowSearch(blocks);
    private final List<AddressRange> ranges = new ArrayList<>();
    private final SplitPolicy splitPolicy;
    private final ShardCounters counters;
    /// What was searched for in vain last, if nothing became free since; or 0.
    private long missedBytes;

    BlockHeap(SplitPolicy splitPolicy, MissClock clock, ShardCounters counters) {
        this.splitPolicy = splitPolicy;
        this.counters = counters;
        this.marks = new IdleMarks(blocks, clock);
        this.freeRuns = new FreeRuns(blocks, new SegmentParts(blocks, counters), marks);
    }

    /// Takes a free block, whole or its first part.
    ///
    /// @return its address, or 0 if none fits
    long allocate(long byteSize) {
        int block = freeRuns.bestFit(byteSize);
        if (block == Blocks.NONE || splitPolicy.wastes(blocks.byteSize[block], byteSize)) {
            missedBytes = byteSize;
            return 0;
        }
        return handOut(block, byteSize);
    }

    /// As [#allocate], also from a block that is worth more whole: nobody has anything else.
    long allocateFromAny(long byteSize) {
        int block = freeRuns.bestFit(byteSize);
        return block == Blocks.NONE ? 0 : handOut(block, byteSize);
    }

    /// Takes a block out of the live ones.
    ///
    /// @return the block, whose state is for the caller to set
    /// @throws UnknownAddressException if no live block starts there
    int retire(AddressRange range, long address) {
        int block = liveAt(range, address);
        range.live.remove(address);
        counters.freed(blocks.byteSize[block]);
        return block;
    }

    /// The live block that starts at an address.
    ///
    /// @throws UnknownAddressException if none does
    int liveAt(AddressRange range, long address) {
        int block = range.live.find(address);
        if (block == Blocks.NONE || blocks.address[block] != address) {
            throw new UnknownAddressException(address);
        }
        return block;
    }

    /// Hands out a free block that begins a free run, or its first part.
    private long handOut(int block, long byteSize) {
        reserve(block, 1);
        long available = blocks.byteSize[block];
        freeRuns.takeFirst(block, splitPolicy.cuts(available, byteSize) ? byteSize : available);
        return live(block);
    }

    /// What a block needs of the Java heap to become live, and so many more blocks: before anything changes.
    private void reserve(int block, int more) {
        blocks.reserve(more);
        blocks.range[block].live.reserve(blocks.address[block]);
    }

    private long live(int block) {
        blocks.state[block] = Blocks.LIVE;
        long address = blocks.address[block];
        blocks.range[block].live.put(address, block);
        counters.allocated(blocks.byteSize[block]);
        return address;
    }

    /// Makes a block free, one with the free blocks beside it.
    void makeFree(int block) {
        missedBytes = 0;
        freeRuns.add(block, Blocks.FREE);
    }

    void addHole(PageArena arena) {
        blocks.reserve(1);
        ranges.add(arena);
        freeRuns.add(blocks.add(arena, Blocks.CLAIMED), Blocks.HOLE);
    }

    long addAndAllocate(AddressRange range, long byteSize) {
        blocks.reserve(2);
        range.live.reserve(range.address);
        ranges.add(range);
        freeRuns.holdSegments();
        int block = blocks.add(range, Blocks.CLAIMED);
        makeFree(block);
        return handOut(block, byteSize);
    }

    /// As [#allocate], unless that failed and nothing became free since.
    long allocateAfterMiss(long byteSize) {
        return byteSize == missedBytes ? 0 : allocate(byteSize);
    }

    /// Claims a window, the last one being gone. Under the shard's driver lock.
    @Nullable
    MappingWindow claimWindow(long byteSize, @Nullable IdlePages idle) {
        MappingWindow window = search.best(freeRuns, idle, byteSize);
        if (window != null) {
            freeRuns.claim(window.gap(), window.first(), window.last());
        }
        return window;
    }

    /// Makes sure that [#fillAndAllocate] needs no memory of the Java heap: under the same lock, before anything
    /// changes.
    void reserveFor(MappingWindow window) {
        reserve(window.first(), 2);
    }

    /// Makes a claimed window one block, whose bytes have pages up to `end`, and takes a block from it.
    ///
    /// @return the block's address
    long fillAndAllocate(MappingWindow window, long end, long byteSize) {
        int block = window.first();
        for (int i = 1; i < window.count(); i++) {
            blocks.absorbNext(block);
        }
        if (end < blocks.end(block)) {
            freeRuns.add(blocks.split(block, end - blocks.address[block]), Blocks.HOLE);
        }
        if (byteSize < blocks.byteSize[block]) {
            makeFree(blocks.split(block, byteSize)); // its stamp is new: fences come after those awaited for it
        }
        return live(block);
    }

    /// Makes the blocks of a window what they were.
    void abandon(MappingWindow window) {
        missedBytes = 0;
        for (int i = 0; i < window.count(); i++) {
            freeRuns.add(window.block(i), window.state(i));
        }
    }

    /// Shows all pages that lie in free blocks.
    void findIdle(IdlePages idle) {
        freeRuns.measure(Sizes.SLOT);
        freeRuns.forEachFree(Sizes.SLOT, block -> {
            if (blocks.range[block] instanceof PageArena arena) {
                idle.addAll(arena, blocks.address[block], blocks.end(block), blocks.gapBytes[block]);
            }
        });
    }

    /// Whether no block is in use, and all pages at home here may go elsewhere. With the page table's lock;
    /// without, a guess.
    boolean isVacant() {
        return liveBytes() == 0 && ranges.stream().allMatch(range -> isFree(range) && !range.isPinned());
    }

    private boolean isFree(AddressRange range) {
        for (int block = range.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
            boolean taken = switch (blocks.state[block]) {
                case Blocks.LENT -> Objects.requireNonNull(blocks.lent[block]).isHome(); // somebody is moving the page
                case Blocks.FREE, Blocks.HOLE, Blocks.RETIRED -> false;
                default -> true;
            };
            if (taken) {
                return false;
            }
        }
        return true;
    }

    /// Has all that is free count as freed now, and pages at home elsewhere as left now.
    void freeAnew() {
        marks.stamp(freeRuns);
        for (AddressRange range : ranges) {
            for (int block = range.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
                if (blocks.state[block] == Blocks.LENT) {
                    marks.stamp(Objects.requireNonNull(blocks.lent[block]));
                }
            }
        }
    }

    /// Makes the marks at idle pages anew, if they were let go.
    void renewMarks() {
        marks.renew(ranges, freeRuns);
    }

    /// Whether the mark at a page is right, if marks are kept.
    boolean isMarkedRightly(Mapping home) {
        return !marks.areKept() || home.idle == (freeRuns.findFree(home) != Blocks.NONE);
    }

    /// Takes the addresses of an idle page out of the free blocks: its home will be elsewhere.
    ///
    /// @return whether the page is still idle
    boolean lend(Mapping home) {
        if (!marks.areKept() || !home.idle || !home.isHome()) {
            return false;
        }
        boolean known = blocks.is(home.idleBlock, Blocks.FREE) && blocks.isAround(home.idleBlock, home);
        int free = known ? home.idleBlock : freeRuns.findFree(home);
        blocks.reserve(2);
        home.block = freeRuns.lend(free, home.address, home.end());
        blocks.lent[home.block] = home;
        return true;
    }

    /// A page has come home: its block is free.
    void returned(Mapping home) {
        freeRuns.claim(home.block, home.block);
        makeFree(home.block);
    }

    /// Claims what could go back to the driver, of the youngest regions first.
    ///
    /// @param claimed gets the blocks, also those claimed before a failure
    void claimIdle(long wanted, ClaimedBlocks claimed) {
        long left = wanted;
        for (int block : freeBlocks()) {
            if (left <= 0) {
                break;
            }
            left -= claimIdle(block, left, claimed);
        }
    }

    /// The free blocks, those of the last region first, by address in each. Blocks in use are not looked at:
    /// there may be a million of them.
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

    /// Claims idle segments that came to rest at least as long ago as the average one. Arenas are none.
    ///
    /// @param claimed as of [#claimIdle]
    void claimAged(long wanted, ClaimedBlocks claimed) {
        List<AddressRange> idle = ranges.stream().filter(this::isIdleSegment).toList();
        double average =
                idle.stream().mapToLong(range -> range.idleSince).average().orElse(0);
        long left = wanted;
        for (AddressRange range : idle) {
            if (left > 0 && range.idleSince <= average) {
                left -= claimIdle(range.firstBlock, left, claimed);
            }
        }
    }

    private boolean isIdleSegment(AddressRange range) {
        return !range.keepsAddresses()
                && blocks.is(range.firstBlock, Blocks.FREE)
                && blocks.byteSize[range.firstBlock] == range.byteSize;
    }

    private int claimPart(int block, long start, long end) {
        blocks.reserve(2);
        freeRuns.claim(block, block);
        int part = block;
        if (start > blocks.address[block]) {
            part = blocks.split(block, start - blocks.address[block]);
            freeRuns.add(block, Blocks.FREE);
        }
        if (end < blocks.end(part)) {
            freeRuns.add(blocks.split(part, end - blocks.address[part]), Blocks.FREE);
        }
        return part;
    }

    /// Claims a aliased block, or one that is spent but still has its mapping.
    void claim(int block) {
        if (blocks.state[block] == Blocks.LENT) {
            freeRuns.claim(block, block);
        }
        blocks.state[block] = Blocks.CLAIMED;
    }

    /// Makes a claimed block aliased or spent again.
    void unclaim(int block, byte state) {
        freeRuns.add(block, state);
    }

    /// A claimed block without memory now.
    void gaveBack(int block) {
        blocks.lent[block] = null;
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

    /// Takes a part of a hole out of use, because a mapping is stuck there.
    void spend(Mapping stuck) {
        int block = stuck.arena.firstBlock;
        while (blocks.end(block) <= stuck.address) {
            block = blocks.next[block];
        }
        blocks.reserve(2);
        freeRuns.claim(block, block);
        if (blocks.end(block) > stuck.end()) {
            freeRuns.add(blocks.split(block, stuck.end() - blocks.address[block]), Blocks.HOLE);
        }
        if (blocks.address[block] < stuck.address) {
            stuck.block = blocks.split(block, stuck.address - blocks.address[block]);
            freeRuns.add(block, Blocks.HOLE);
        } else {
            stuck.block = block;
        }
        blocks.state[stuck.block] = Blocks.RETIRED;
    }

    /// Takes the regions out of a heap without memory.
    ///
    /// @return the regions, or null if there are mappings left, in use or not
    @Nullable
    List<AddressRange> removeEmptyRegions() {
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

    /// Whether a block of this size is live at an address.
    boolean isLive(long address, long byteSize) {
        for (AddressRange range : ranges) {
            if (address >= range.address && address < range.end()) {
                int block = range.live.find(address);
                return block != Blocks.NONE && blocks.address[block] == address && blocks.byteSize[block] == byteSize;
            }
        }
        return false;
    }

    long liveBytes() {
        return counters.allocatedBytes();
    }

    /// What the shard has besides, for a survey of it.
    List<AddressRange> ranges() {
        return ranges;
    }

    long largestFreeBytes() {
        long[] largest = {0};
        freeRuns.forEachFree(0, block -> largest[0] = Math.max(largest[0], blocks.byteSize[block]));
        return largest[0];
    }

    /// Checks the invariants above.
    ///
    /// @return bytes that have memory
    /// @throws IllegalStateException if one does not hold
    long checkInvariants() {
        return new ShardCheck(blocks, freeRuns, ranges)
                .check(liveBytes(), counters.gauge(CacheStat.ALLOCATION).current());
    }
}
