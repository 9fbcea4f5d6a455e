package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.CacheStat;
import io.cistern.caching.internal.base.ReservedList;
import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.base.ShortLock;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.BlockHeap;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.heap.FreeRuns;
import io.cistern.caching.internal.heap.RangeOwner;
import io.cistern.caching.internal.heap.SmallerRuns;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageOwner;
import io.cistern.caching.internal.page.Reserved;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// The memory of one shard: its blocks and the [pages][ShardPages] under them. [Growth] adds memory while it holds
/// the shard's driver lock.
///
/// **Threading.** The lock guards all of this. Every method takes it, except where the comment says that the
/// caller holds it.
public final class GrowingShard {
    public final ShortLock lock = new ShortLock();
    public final BlockHeap heap;
    public final ShardCounters counters;
    public final Reserved reserved;
    private final RangeOwner shard;
    private final Blocks blocks;
    private final FreeRuns freeRuns;
    private final IdleMarks marks;
    private final WindowSearch search;
    private final UsablePages maybeUsable = page -> page.home.owner.mayBeIdle(page.home);
    private final ShardPages pages;

    /// Makes a shard without memory.
    public GrowingShard(
            RangeOwner shard, StreamTimeline timeline, SplitPolicy splitPolicy, MissClock clock, Reserved reserved) {
        this.shard = shard;
        this.reserved = reserved;
        this.counters = new ShardCounters(shard.isSmall(), reserved.counters);
        this.blocks = new Blocks();
        this.marks = new IdleMarks(blocks, clock);
        this.heap = new BlockHeap(
                blocks, splitPolicy, marks, shard.isSmall() ? SmallerRuns.NONE : this::smallerRun, counters);
        this.freeRuns = heap.freeRuns;
        this.search = new WindowSearch(blocks);
        this.pages = new ShardPages(shard, timeline, lock, heap, blocks, marks, counters);
    }

    /// Its pages, as the page table sees them.
    public PageOwner pages() {
        return pages;
    }

    /// How far its stream has got.
    public StreamTimeline timeline() {
        return pages.timeline();
    }

    /// Bytes of live blocks; may be one operation old.
    public long liveBytes() {
        return heap.liveBytes();
    }

    /// Small blocks are placed by the best fit alone: a page for them is the smallest there is.
    private int smallerRun(int block, long byteSize) {
        return search.ready(freeRuns, maybeUsable, block, byteSize);
    }

    /// Allocates a block of exactly this size.
    ///
    /// @param byteSize whole granules
    /// @return its address, or 0 if no free block fits
    public long allocate(long byteSize) {
        lock.lock();
        try {
            return heap.allocate(byteSize);
        } finally {
            lock.unlock();
        }
    }

    /// Allocates a block that became free after a failed search: frees take no driver lock.
    ///
    /// @return its address, or 0
    long allocateAfterMiss(long byteSize) {
        lock.lock();
        try {
            return heap.allocateAfterMiss(byteSize);
        } finally {
            lock.unlock();
        }
    }

    /// Adds a range that has no memory yet, as one hole.
    void addHole(PageArena arena) {
        lock.lock();
        try {
            heap.addHole(arena);
        } finally {
            lock.unlock();
        }
    }

    /// Adds a range with memory and allocates from it. If the Java heap is full, nothing changes.
    ///
    /// @return the block's address
    long addAndAllocate(AddressRange range, long byteSize) {
        lock.lock();
        try {
            long address = heap.addAndAllocate(range, byteSize);
            counters.grown(range.byteSize);
            return address;
        } finally {
            lock.unlock();
        }
    }

    /// Claims the window in the smallest free run that has one; the previous window must be done with. The caller holds
    /// the page table's lock.
    ///
    /// @param idle pages that count as present, or null for none
    /// @return null if no window is large enough
    @Nullable
    MappingWindow claimWindow(long byteSize, @Nullable IdlePages idle) {
        lock.lock();
        try {
            MappingWindow window = search.best(freeRuns, idle, byteSize);
            if (window != null) {
                freeRuns.claim(window.gap(), window.first(), window.last());
            }
            return window;
        } finally {
            lock.unlock();
        }
    }

    /// Makes room for mappings in an arena, up to an address.
    void reserve(PageArena arena, long end) {
        lock.lock();
        try {
            arena.reserve(end);
        } finally {
            lock.unlock();
        }
    }

    /// Publishes a window whose pages are mapped, and allocates from it. If the Java heap is
    /// full, nothing changes.
    ///
    /// @param entered the mappings that were made for the window, by address
    /// @param cameBytes the bytes of its pages that are new or had their home elsewhere
    /// @param end where the window's pages end
    /// @return the block's address
    long fillAndAllocate(MappingWindow window, ReservedList<Mapping> entered, long cameBytes, long end, long byteSize) {
        lock.lock();
        try {
            heap.reserve(window.first(), 2);
            for (int i = 0; i < entered.size(); i++) {
                window.arena().enter(entered.get(i));
            }
            long address = heap.fillAndAllocate(window.first(), window.count(), end, byteSize);
            if (cameBytes > 0) {
                counters.came(cameBytes);
            }
            return address;
        } finally {
            lock.unlock();
        }
    }

    /// Gives up a claimed window.
    void abandon(MappingWindow window) {
        lock.lock();
        try {
            for (int i = 0; i < window.count(); i++) {
                heap.unclaim(window.block(i), window.state(i));
            }
        } finally {
            lock.unlock();
        }
    }

    /// Retires the addresses of a mapping that the driver would not unmap; they are a part of a hole.
    void spend(Mapping stuck) {
        lock.lock();
        try {
            stuck.block = heap.spend(stuck.arena, stuck.address, stuck.end());
            stuck.arena.enter(stuck);
        } finally {
            lock.unlock();
        }
    }

    /// Frees a live block that no caller received.
    void takeBack(AddressRange range, long address) {
        lock.lock();
        try {
            heap.makeFree(heap.retire(range, address));
        } finally {
            lock.unlock();
        }
    }

    /// Gives a vacant shard to another stream. The caller holds the page table's lock.
    ///
    /// @param successor the timeline of the new stream, whose work comes after all work of the former one
    /// @param anew whether that former work may still run, so that only fences from now on cover
    ///     the free blocks
    /// @return whether the shard was vacant
    boolean passTo(StreamTimeline successor, boolean anew) {
        lock.lock();
        try {
            if (!hasNothingInUse()) {
                return false;
            }
            if (anew) {
                freeAnew();
            }
            pages.passTo(successor);
            return true;
        } finally {
            lock.unlock();
        }
    }

    /// Whether no block is in use and every page with its home here may leave. Without the page table's lock
    /// this is a guess.
    public boolean isVacant() {
        lock.lock();
        try {
            return hasNothingInUse();
        } finally {
            lock.unlock();
        }
    }

    private boolean hasNothingInUse() {
        return heap.liveBytes() == 0 && heap.ranges().stream().allMatch(range -> isFree(range) && !range.isPinned());
    }

    private boolean isFree(AddressRange range) {
        for (int block = range.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
            boolean taken = switch (blocks.state[block]) {
                case Blocks.LENT -> aliased(block).isHome(); // another thread is moving the page
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

    /// Makes all free blocks count as freed now, and aliased mappings as left now.
    private void freeAnew() {
        marks.stamp(freeRuns);
        List<AddressRange> ranges = heap.ranges();
        for (int i = 0; i < ranges.size(); i++) {
            for (int block = ranges.get(i).firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
                if (blocks.state[block] == Blocks.LENT) {
                    marks.stamp(aliased(block));
                }
            }
        }
    }

    boolean isSmall() {
        return shard.isSmall();
    }

    /// Bytes of memory in this shard; may be one operation old.
    public long reservedBytes() {
        return counters.gauge(CacheStat.RESERVED_BYTES).current();
    }

    /// Checks the blocks and the marks of their pages. The caller holds the driver lock and the lock.
    ///
    /// @return bytes that have memory
    /// @throws IllegalStateException if an invariant does not hold
    public long checkInvariants() {
        return new ShardCheck(heap, marks).check();
    }
}
