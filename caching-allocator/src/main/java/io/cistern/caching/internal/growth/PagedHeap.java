package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.ReservedList;
import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.BlockHeap;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.heap.FreeRuns;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageOwner;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// The blocks of a shard together with the pages under them: which pages are idle, which blocks are aliased, and the
/// windows that a request can have. Guarded by the shard's lock.
public final class PagedHeap {
    public final BlockHeap heap;
    public final IdleMarks marks;
    private final Blocks blocks;
    private final FreeRuns freeRuns;
    private final WindowSearch search;

    public PagedHeap(SplitPolicy splitPolicy, MissClock clock, ShardCounters counters) {
        this.blocks = new Blocks();
        this.marks = new IdleMarks(blocks, clock);
        this.heap = new BlockHeap(blocks, splitPolicy, marks, counters);
        this.freeRuns = heap.freeRuns;
        this.search = new WindowSearch(blocks);
    }

    /// Claims a window, the last one being gone. Under the shard's driver lock.
    @Nullable
    public MappingWindow claimWindow(long byteSize, @Nullable IdlePages idle) {
        MappingWindow window = search.best(freeRuns, idle, byteSize);
        if (window != null) {
            freeRuns.claim(window.gap(), window.first(), window.last());
        }
        return window;
    }

    /// Publishes a window whose pages are there up to `end`, and takes a block from it. Without memory of the Java
    /// heap for that, nothing has changed.
    ///
    /// @return the block's address
    public long fillAndAllocate(MappingWindow window, ReservedList<Mapping> entered, long end, long byteSize) {
        heap.reserve(window.first(), 2);
        window.arena().reserve(end);
        for (int i = 0; i < entered.size(); i++) {
            window.arena().enter(entered.get(i));
        }
        return heap.fillAndAllocate(window.first(), window.count(), end, byteSize);
    }

    /// Makes the blocks of a window what they were.
    public void abandon(MappingWindow window) {
        for (int i = 0; i < window.count(); i++) {
            heap.unclaim(window.block(i), window.state(i));
        }
    }

    /// Shows all free blocks that pages may lie in.
    public void findIdle(PageOwner.FreeBlocks seen) {
        freeRuns.forEachFree(Sizes.SLOT, block -> {
            if (blocks.range[block] instanceof PageArena arena) {
                seen.add(arena, blocks.address[block], blocks.end(block));
            }
        });
    }

    /// Whether no block is in use, and all pages at home here may go elsewhere. With the page table's lock;
    /// without, a guess.
    public boolean isVacant() {
        return heap.liveBytes() == 0 && heap.ranges().stream().allMatch(range -> isFree(range) && !range.isPinned());
    }

    private boolean isFree(AddressRange range) {
        for (int block = range.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
            boolean taken = switch (blocks.state[block]) {
                case Blocks.LENT -> aliased(block).isHome(); // somebody is moving the page
                case Blocks.FREE, Blocks.HOLE, Blocks.RETIRED -> false;
                default -> true;
            };
            if (taken) {
                return false;
            }
        }
        return true;
    }

    private Mapping aliased(int block) {
        PageArena arena = (PageArena) blocks.range[block];
        return Objects.requireNonNull(arena.mappingAt(blocks.address[block]));
    }

    /// Has all that is free count as freed now, and pages at home elsewhere as left now.
    public void freeAnew() {
        marks.stamp(freeRuns);
        List<AddressRange> ranges = heap.ranges();
        for (int i = 0; i < ranges.size(); i++) {
            AddressRange range = ranges.get(i);
            for (int block = range.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
                if (blocks.state[block] == Blocks.LENT) {
                    marks.stamp(aliased(block));
                }
            }
        }
    }

    /// Makes the marks at idle pages anew, if they were let go.
    public void renewMarks() {
        marks.renew(heap.ranges(), freeRuns);
    }

    /// Takes the addresses of an idle page out of the free blocks: its home will be elsewhere.
    ///
    /// @return whether the page is still idle
    public boolean lend(Mapping home) {
        if (!marks.areKept() || !home.idle || !home.isHome()) {
            return false;
        }
        int free = home.idleBlock;
        if (!blocks.is(free, Blocks.FREE) || !blocks.isAround(free, home.arena, home.address, home.end())) {
            free = freeRuns.findFree(home.arena, home.address, home.end());
        }
        blocks.reserve(2);
        home.block = freeRuns.lend(free, home.address, home.end());
        return true;
    }

    /// A page has come home: its block is free.
    public void returned(Mapping home) {
        freeRuns.claim(home.block, home.block);
        heap.makeFree(home.block);
    }

    /// Takes a part of a hole out of use, because a mapping is stuck there.
    public void spend(Mapping stuck) {
        stuck.arena.reserve(stuck.end());
        stuck.block = heap.spend(stuck.arena, stuck.address, stuck.end());
        stuck.arena.enter(stuck);
    }

    /// Checks the blocks and what is noted of their pages.
    ///
    /// @return bytes that have memory
    /// @throws IllegalStateException if an invariant does not hold
    public long checkInvariants() {
        return new ShardCheck(heap, marks).check();
    }
}
