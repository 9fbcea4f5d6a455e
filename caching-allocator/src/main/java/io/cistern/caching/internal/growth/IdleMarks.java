package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.heap.FreeBlockObserver;
import io.cistern.caching.internal.heap.FreeRuns;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.PageArena;

/// Which pages at home in one shard lie wholly in a free block, and since when: marks at their homes, so that a
/// [search][WindowSearch] asks in constant time.
///
/// To keep them up to date costs some nanoseconds a page, at each free and each taking. So they are kept only
/// while searches come: after [#UNASKED] takings without one they are let go, and the next search makes them
/// anew, by a walk over arenas and free blocks. Pages freed meanwhile count as freed at that moment. What a
/// search itself takes does not count: it would let go of the marks that it still needs.
///
/// **Invariant**, while marks are kept: a page is idle exactly if it lies in a free block of its home's arena,
/// and was freed at its time or before.
///
/// Guarded by the shard's lock, except that [#areKept] and [#asked] are guesses for those who look without it.
public final class IdleMarks implements FreeBlockObserver {
    /// A walk takes some microseconds, as much as so many takings save.
    private static final int UNASKED = 1024;

    private final Blocks blocks;
    private final MissClock clock;
    private boolean kept = true;
    private int takings;

    IdleMarks(Blocks blocks, MissClock clock) {
        this.blocks = blocks;
        this.clock = clock;
    }

    /// Whether they are up to date.
    public boolean areKept() {
        return kept;
    }

    /// A search looks at them.
    public void asked() {
        takings = 0;
    }

    /// Makes them anew.
    void renew(Iterable<AddressRange> ranges, FreeRuns freeRuns) {
        if (kept) {
            return;
        }
        kept = true;
        for (AddressRange range : ranges) {
            if (range instanceof PageArena arena) {
                arena.forEachHome(home -> home.idle = false);
            }
        }
        stamp(freeRuns);
    }

    /// Marks all that is free as freed now.
    void stamp(FreeRuns freeRuns) {
        freeRuns.forEachFree(Sizes.SLOT, block -> freed(block, blocks.address[block], blocks.end(block)));
    }

    /// Has a page count as left now.
    void stamp(Mapping lent) {
        lent.freedAt = clock.now();
    }

    /// A range became part of a free block, and so perhaps pages that lie in it partly.
    @Override
    public void freed(int free, long from, long to) {
        if (!kept || !(blocks.range[free] instanceof PageArena arena)) {
            return;
        }
        long start = blocks.address[free];
        long end = blocks.end(free);
        if (end - start < arena.slotBytes) { // no page is as small
            return;
        }
        long now = clock.now();
        boolean any = false;
        for (long at = from; at < to; ) {
            Mapping home = arena.homeAt(at);
            if (home.address >= start && home.end() <= end) {
                home.idle = true;
                home.idleBlock = free;
                home.freedAt = now;
                any = true;
            }
            at = home.end();
        }
        if (any) {
            arena.pageOwner.timeline().newestIdle = now;
        }
    }

    /// A request found a free block.
    @Override
    public void served() {
        if (kept) {
            kept = ++takings < UNASKED;
        }
    }

    /// The first bytes of a free block, up to an address, are taken.
    @Override
    public void taken(int free, long to) {
        if (kept && blocks.range[free] instanceof PageArena arena && blocks.byteSize[free] >= arena.slotBytes) {
            for (long at = blocks.address[free]; at < to; ) {
                Mapping home = arena.homeAt(at);
                home.idle = false;
                at = home.end();
            }
        }
    }
}
