package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.heap.FreeBlockObserver;
import io.cistern.caching.internal.heap.FreeRuns;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.PageArena;
import java.util.concurrent.atomic.AtomicLong;

/// Marks the pages with their home in one shard that lie wholly in a free block, and since when. A
/// [search][WindowSearch] reads a mark in constant time.
///
/// Keeping the marks costs time for each page, at each free and each allocation. So they are kept only while
/// searches need them: after [#UNASKED] allocations without a search they are dropped, and the next search rebuilds
/// them by a walk over arenas and free blocks. Pages that were freed meanwhile count as freed at that moment.
/// Blocks that a search itself takes do not count, or it would drop the marks that it still needs.
///
/// A page that was taken and comes back unused keeps its time: another stream need not wait for work that came after
/// it.
///
/// **Invariant**, while marks are kept: a page is idle exactly if it lies in a free block of its home's arena,
/// and was freed at its time or before.
///
/// Guarded by the shard's lock. [#kept] and [#asked] are also used without it; then they are guesses.
public final class IdleMarks implements FreeBlockObserver {
    /// A walk costs about as much as this many allocations save without marks.
    private static final int UNASKED = 1024;

    private final Blocks blocks;
    private final AtomicLong clock;
    /// Whether the marks are up to date; if not, the next search renews them.
    boolean kept = true;
    private int takings;

    IdleMarks(Blocks blocks, AtomicLong clock) {
        this.blocks = blocks;
        this.clock = clock;
    }

    /// Records that a search reads the marks.
    public void asked() {
        takings = 0;
    }

    void renew(Iterable<AddressRange> ranges, FreeRuns freeRuns) {
        if (kept) {
            return;
        }
        boolean done = false;
        try {
            kept = true;
            long now = clock.get();
            for (AddressRange range : ranges) {
                if (range instanceof PageArena arena) {
                    arena.forEachHome(home -> {
                        home.idle = false;
                        home.freedAt = now;
                    });
                }
            }
            stamp(freeRuns);
            done = true;
        } finally {
            kept = done;
        }
    }

    /// Marks all free blocks as freed now.
    void stamp(FreeRuns freeRuns) {
        freeRuns.forEachFree(Sizes.SLOT, block -> freed(block, blocks.address[block], blocks.end(block), true));
    }

    void stamp(Mapping aliased) {
        aliased.freedAt = clock.get();
    }

    /// A range became part of a free block; pages that lie partly in the range may now be wholly free.
    @Override
    public void freed(int free, long from, long to, boolean anew) {
        if (!kept || !(blocks.range[free] instanceof PageArena arena)) {
            return;
        }
        long start = blocks.address[free];
        long end = blocks.end(free);
        if (end - start < arena.slotBytes) { // no page is that small
            return;
        }
        long now = clock.get();
        for (long at = from; at < to; ) {
            Mapping home = arena.homeAt(at);
            if (home.address >= start && home.end <= end) {
                home.idle = true;
                home.idleBlock = free;
                if (anew || home.address < from || home.end > to) {
                    home.freedAt = now;
                }
            }
            at = home.end;
        }
    }

    @Override
    public void served() {
        if (kept) {
            kept = ++takings < UNASKED;
        }
    }

    @Override
    public void taken(int free, long to) {
        if (kept && blocks.range[free] instanceof PageArena arena && blocks.byteSize[free] >= arena.slotBytes) {
            for (long at = blocks.address[free]; at < to; ) {
                Mapping home = arena.homeAt(at);
                home.idle = false;
                at = home.end;
            }
        }
    }
}
