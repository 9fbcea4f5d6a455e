package io.cistern.caching;

import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Finds the window for a request: the run of neighbouring free blocks, holes and lent blocks with idle pages that is
/// long enough and for which the fewest bytes of pages are missing; among equals the one whose pages need the fewest
/// waits for other streams, then the shortest, then the lowest.
///
/// 1. Two ends go over an arena's blocks: the back one takes blocks in, one by one; a block that can't be used empties
/// the window.
/// 2. While the window is long enough it is compared with the best so far and loses its first block.
/// 3. No page may count twice. So a lent block whose page is at home or lent once more inside the window, and a free
/// block in which pages lie that are lent inside the window, first push the front end past the other place.
///
/// Under the shard's lock and the page table's. Takes time in the number of blocks.
final class WindowSearch {
    private final Blocks blocks;
    private final IdlePages idle;
    private final long byteSize;

    private int first = Blocks.NONE;
    private long length;
    private long holes;
    private int waits;
    /// Lent blocks of the window whose pages are at home at higher addresses of the arena.
    private int[] ahead = new int[8];
    private int aheadCount;

    private int bestFirst = Blocks.NONE;
    private int bestLast;
    private long bestMissing = Long.MAX_VALUE;
    private int bestWaits;
    private long bestLength;

    WindowSearch(Blocks blocks, IdlePages idle, long byteSize) {
        this.blocks = blocks;
        this.idle = idle;
        this.byteSize = byteSize;
    }

    @Nullable
    Window best(List<Region> regions) {
        for (Region region : regions) {
            if (region instanceof PageArena arena) {
                search(arena);
            }
        }
        return bestFirst == Blocks.NONE ? null : Window.of(blocks, bestFirst, bestLast);
    }

    private void search(PageArena arena) {
        empty(); endRange();
        for (int block = arena.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
            switch (blocks.state[block]) {
                case Blocks.FREE -> takeInFree(block);
                case Blocks.HOLE -> takeIn(block);
                case Blocks.LENT -> takeInLent(block, arena);
                default -> { empty(); endRange(); }
            }
            if (first != Blocks.NONE && length >= byteSize && candFirst == Blocks.NONE) {
                candidate(block);
            }
        }
        empty(); endRange();
    }
    private int candFirst = Blocks.NONE, candLast, candWaits; private long candMissing;

    private void endRange() {
        if (candFirst != Blocks.NONE) {
            boolean tail = lastTaken != Blocks.NONE && blocks.next[lastTaken] == Blocks.NONE;
            long used = tail ? Long.MAX_VALUE : runLength;
            boolean better = candMissing < bestMissing || candMissing == bestMissing && (candWaits < bestWaits || candWaits == bestWaits && used < bestLength);
            if (better) { bestFirst = candFirst; bestLast = candLast; bestMissing = candMissing; bestWaits = candWaits; bestLength = used; }
            candFirst = Blocks.NONE;
        }
        runLength = 0; lastTaken = Blocks.NONE;
    }
    private void empty() {
        first = Blocks.NONE;
        length = 0;
        holes = 0;
        waits = 0;
        aheadCount = 0;
    }

    private void takeIn(int block) {
        if (first == Blocks.NONE) {
            first = block;
        }
        long size = blocks.byteSize[block];
        length += size; runLength += size; lastTaken = block;
        holes += blocks.state[block] == Blocks.HOLE ? size : 0;
    }

    private void takeInFree(int block) {
        for (int i = 0; i < aheadCount; i++) {
            Mapping lent = mapping(ahead[i]);
            long home = lent.page.home.address;
            if (home >= blocks.address[block] && home < blocks.end(block)) {
                dropUpTo(lent.address, lent.arena);
            }
        }
        takeIn(block);
    }

    private void takeInLent(int block, PageArena arena) {
        Mapping lent = mapping(block);
        Page page = lent.page;
        if (!idle.has(page)) {
            runLength += blocks.byteSize[block]; lastTaken = block;
            empty();
            return;
        }
        if (page.home.arena == arena && page.home.address < lent.address) {
            dropUpTo(page.home.address, arena);
        }
        if (page.search == idle.number() && page.searchedAt < lent.address) {
            dropUpTo(page.searchedAt, arena);
        }
        page.search = idle.number();
        page.searchedAt = lent.address;
        if (page.home.arena == arena && page.home.address > lent.address) {
            addAhead(block);
        }
        takeIn(block);
        waits += idle.needsWait(page) ? 1 : 0;
    }

    private void addAhead(int block) {
        if (aheadCount == ahead.length) {
            ahead = Arrays.copyOf(ahead, aheadCount * 2);
        }
        ahead[aheadCount++] = block;
    }

    /// Pushes the front end past an address, if it is in the window.
    private void dropUpTo(long address, PageArena arena) {
        while (first != Blocks.NONE && length > 0 && blocks.address[first] <= address) {
            drop(arena);
        }
        if (length == 0) {
            first = Blocks.NONE;
        }
    }

    private void drop(PageArena arena) {
        long size = blocks.byteSize[first];
        length -= size;
        if (blocks.state[first] == Blocks.HOLE) {
            holes -= size;
        } else if (blocks.state[first] == Blocks.LENT && idle.needsWait(mapping(first).page)) {
            waits--;
        }
        first = length == 0 ? Blocks.NONE : blocks.next[first];
    }

    private Mapping mapping(int block) {
        PageArena arena = (PageArena) blocks.region[block];
        return java.util.Objects.requireNonNull(arena.mappingAt(blocks.address[block]));
    }

    private long runLength; private int lastTaken = Blocks.NONE;
    private void candidate(int last) {
        long used = length;
        long missing = holes;
        if (blocks.state[last] == Blocks.HOLE) {
            long inLast = blocks.byteSize[last];
            long before = length - inLast;
            long needed = Math.min(inLast, Sizes.roundUp(byteSize - before, ((PageArena) blocks.region[last]).slotBytes));
            missing += needed - inLast;
            used = before + needed;
        }
        candFirst = first; candLast = last; candMissing = missing; candWaits = Boolean.getBoolean("nw") ? 0 : waits;
    }
}
