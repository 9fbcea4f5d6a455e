package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.heap.FreeRuns;
import io.cistern.caching.internal.heap.SmallerRuns;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageArena;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.IntPredicate;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Finds the window for a request: in the smallest [free run][FreeRuns] that has one, the first stretch of free
/// blocks, holes and aliased blocks with idle pages that is long enough. The end of an arena is the largest free run.
///
/// 1. A stretch takes in the blocks of a free run, one by one, until it is long enough. An aliased block whose
///    page is in use elsewhere ends it; the next stretch begins after that block.
/// 2. No page may count twice. Two kinds of blocks push the start of the stretch past their page's other place:
///    an aliased block whose page has its home or another aliased block inside the stretch, and a free block
///    over pages that are aliased inside the stretch.
///
/// Windows begin where free runs begin, if possible, so that a workload that repeats finds its former windows.
///
/// [#window] serves misses, [#best] each allocation where blocks are aliased: both place a request in the same way.
///
/// Each shard has one search. [#window] is called under the shard's locks and the page table's, [#best] only under
/// the shard's short lock: its view of pages is then a guess. A search takes time linear in the number of blocks.
final class WindowSearch implements SmallerRuns {
    /// How many free runs and blocks of smaller runs an allocation looks at. Most recorded programs have fewer; one
    /// that fragments its memory has thousands.
    private static final int FEW = 32;

    private final Blocks blocks;
    private final IntPredicate searchRun = this::searchRun;
    /// Which pages may come back to their aliased blocks, in the current search; null for none.
    private @Nullable Predicate<Page> usable;

    /// By a page's number: the last search that met it, and the address where it did.
    private long[] searches = new long[64];

    private long[] addresses = new long[64];
    private long search;

    private long byteSize;
    private int first = Blocks.NONE;
    private long length;
    private int holes;
    /// Aliased blocks of the stretch whose pages have their home at higher addresses of the arena.
    private int[] ahead = new int[8];
    private int aheadCount;

    /// How many free runs and blocks are still looked at.
    private int left;

    private int bestStart;
    private int bestFirst;
    private int bestLast;
    private long bestRun;
    /// Whether pages are missing in the best window.
    private boolean isLacking;

    WindowSearch(Blocks blocks) {
        this.blocks = blocks;
    }

    /// Searches all free runs.
    ///
    /// @param pages pages that may come back to their aliased blocks, or null for none
    /// @return the window; null if none is long enough
    @Nullable
    MappingWindow window(FreeRuns freeRuns, @Nullable Predicate<Page> pages, long bytes) {
        begin(pages, bytes, Integer.MAX_VALUE);
        freeRuns.forEachRun(bytes, Long.MAX_VALUE, searchRun);
        return bestFirst == Blocks.NONE ? null : new MappingWindow(blocks, bestStart, bestFirst, bestLast);
    }

    /// Searches for a window for which no page is missing, in a free run that is smaller than a block's.
    @Override
    public int best(FreeRuns freeRuns, int block, long bytes) {
        long most = block == Blocks.NONE ? Long.MAX_VALUE : blocks.runBytes[block];
        begin(page -> page.home.owner.mayBeIdle(page.home), bytes, FEW);
        freeRuns.forEachRun(bytes, most, searchRun);
        boolean isReady = bestFirst != Blocks.NONE && !isLacking;
        if (!isReady || bestRun > most || (bestRun == most && blocks.address[bestFirst] >= blocks.address[block])) {
            return block;
        }
        return bestFirst == bestLast && blocks.state[bestFirst] == Blocks.FREE ? bestFirst : whoseArePages();
    }

    private int whoseArePages() {
        for (int block = bestFirst; ; block = blocks.next[block]) {
            Mapping aliased = blocks.state[block] == Blocks.ALIASED ? mapping(block) : null;
            if (aliased != null && aliased.page.home.owner.timeline() != aliased.owner.timeline()) {
                return Blocks.NONE;
            }
            if (block == bestLast) {
                return OWN_PAGES;
            }
        }
    }

    private void begin(@Nullable Predicate<Page> pages, long bytes, int most) {
        left = most;
        usable = pages;
        byteSize = bytes;
        bestFirst = Blocks.NONE;
        bestRun = Long.MAX_VALUE;
        search++;
    }

    /// Searches one free run; returns whether to stop after the runs of about its size.
    private boolean searchRun(int runFirst) {
        PageArena arena = (PageArena) blocks.range[runFirst];
        int end = blocks.next[blocks.runEnd[runFirst]];
        long run = blocks.runBytes[runFirst];
        if (run < byteSize) {
            return false;
        }
        if (--left < 0) {
            return true;
        }
        long runEnd = blocks.address[runFirst] + run;
        empty();
        for (int block = runFirst; block != end && --left >= 0; block = blocks.next[block]) {
            if (first == Blocks.NONE) {
                block = skip(block, runEnd, arena);
                if (block == Blocks.NONE) {
                    return false;
                }
            }
            takeIn(block, arena);
            if (length >= byteSize) {
                if (run < bestRun) {
                    bestStart = runFirst;
                    bestFirst = first;
                    bestLast = block;
                    bestRun = run;
                    isLacking = holes > 0;
                }
                return true;
            }
        }
        return false;
    }

    /// Returns the first block at which a stretch can begin. Any stretch that began earlier would contain a
    /// page in use that ends where this block starts. (The Boyer–Moore string search skips in the same way.)
    private int skip(int from, long runEnd, PageArena arena) {
        int block = from;
        while (blocks.address[block] + byteSize <= runEnd) {
            Mapping mapping = arena.mappingAt(blocks.address[block] + byteSize - 1);
            if (mapping == null || !isAliased(mapping) || isUsable(mapping.page)) {
                return block;
            }
            if (mapping.end == runEnd) {
                break;
            }
            block = blocks.next[mapping.block];
        }
        return Blocks.NONE;
    }

    /// Whether an aliased block lies there. The blocks decide: a page that comes home just now has its block before
    /// its home.
    private boolean isAliased(Mapping mapping) {
        return blocks.is(mapping.block, Blocks.ALIASED) && blocks.address[mapping.block] == mapping.address;
    }

    private boolean isUsable(Page page) {
        return usable != null && usable.test(page);
    }

    private void empty() {
        first = Blocks.NONE;
        length = 0;
        holes = 0;
        aheadCount = 0;
    }

    private void takeIn(int block, PageArena arena) {
        byte state = blocks.state[block];
        if (state == Blocks.ALIASED && !clearForAliased(block, arena)) {
            empty();
            return;
        }
        if (state == Blocks.FREE && aheadCount > 0) {
            clearForFree(block);
        }
        if (first == Blocks.NONE) {
            first = block;
        }
        length += blocks.byteSize[block];
        holes += state == Blocks.HOLE ? 1 : 0;
    }

    /// Pushes the start of the stretch past other places of an aliased block's page.
    ///
    /// @return false if the page is in use
    private boolean clearForAliased(int block, PageArena arena) {
        Mapping aliased = mapping(block);
        Page page = aliased.page;
        if (!isUsable(page)) {
            return false;
        }
        Mapping home = page.home;
        if (home.arena == arena && home.address < aliased.address) {
            dropUpTo(home.address);
        }
        long before = meet(page, aliased.address);
        if (before < aliased.address) {
            dropUpTo(before);
        }
        if (home.arena == arena && home.address > aliased.address) {
            addAhead(block);
        }
        return true;
    }

    /// @return the address where this search met the page before; 0 if it did not
    private long meet(Page page, long address) {
        int number = Math.max(0, page.number); // a page that is being removed has none: the guess is wrong then
        if (number >= searches.length) {
            addresses = Arrays.copyOf(addresses, 2 * number);
            searches = Arrays.copyOf(searches, 2 * number);
        }
        long before = searches[number] == search ? addresses[number] : 0;
        searches[number] = search;
        addresses[number] = address;
        return before;
    }

    private void clearForFree(int block) {
        for (int i = 0; i < aheadCount; i++) {
            Mapping aliased = mapping(ahead[i]);
            long home = aliased.page.home.address;
            if (home >= blocks.address[block] && home < blocks.end(block)) {
                dropUpTo(aliased.address);
            }
        }
    }

    private void addAhead(int block) {
        if (aheadCount == ahead.length) {
            ahead = Arrays.copyOf(ahead, aheadCount * 2);
        }
        ahead[aheadCount++] = block;
    }

    private void dropUpTo(long address) {
        while (first != Blocks.NONE && blocks.address[first] <= address) {
            length -= blocks.byteSize[first];
            holes -= blocks.state[first] == Blocks.HOLE ? 1 : 0;
            first = length == 0 ? Blocks.NONE : blocks.next[first];
        }
    }

    /// Returns the mapping of an aliased block.
    Mapping mapping(int block) {
        PageArena arena = (PageArena) blocks.range[block];
        return Objects.requireNonNull(arena.mappingAt(blocks.address[block]));
    }
}
