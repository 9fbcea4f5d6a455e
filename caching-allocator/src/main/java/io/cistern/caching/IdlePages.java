package io.cistern.caching;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;

/// Which pages lie wholly in free blocks and may serve a stream, as one miss sees them.
///
/// Whether one page is idle is [asked][#has] of its home's shard; a [census][#bySize] of all shards is taken only
/// when many are asked for, or when pages are to be chosen. A shard is looked at under its lock and may change at once; so whoever takes a page
/// asks [again][StreamShard#lend].
///
/// Guarded by the lock of the [PageTable].
final class IdlePages {
    /// To ask for a page costs a search among the free blocks of a shard, a census one look at each of them.
    private static final int MOST_ASKED = 8;

    private final CrossStreamOrder order;
    private final List<Page> pages = new ArrayList<>();
    private List<StreamShard> shards = List.of();
    private long number;
    private long liveBytes;
    private long census;
    private boolean counted;
    private boolean sorted;
    private int asked;

    IdlePages(CrossStreamOrder order) {
        this.order = order;
    }

    /// Begins to look at shards on behalf of one of them.
    void look(List<StreamShard> shards, StreamShard taker) {
        number++;
        this.shards = shards;
        counted = false;
        asked = 0;
        liveBytes = 0;
        for (StreamShard shard : shards) {
            StreamTimeline giver = shard.timeline;
            giver.tooNew = -1;
            giver.newestTakeable =
                    order.mayTake(taker.timeline, giver) ? order.newestTakeable(taker.timeline, giver) : -1;
            liveBytes += shard.liveBytes();
        }
    }

    /// Ends a look: streams whose pages could not be had yet get fences, so that they can be had later.
    void done() {
        for (StreamShard shard : shards) {
            StreamTimeline giver = shard.timeline;
            if (giver.tooNew >= 0) {
                order.mark(giver, giver.tooNew);
                giver.tooNew = -1;
            }
        }
    }

    /// Live bytes of all shards.
    long liveBytes() {
        return liveBytes;
    }

    /// The number of this look.
    long number() {
        return number;
    }

    /// Whether a page is idle, may be had, and was not taken in this look.
    boolean has(Page page) {
        if (page.askedIn != number) {
            if (asked++ == MOST_ASKED) {
                count();
            }
            boolean idle = counted ? page.countedIn == census && page.idle : page.pins.isEmpty() && ask(page);
            page.askedIn = number;
            page.idle = idle;
        }
        return page.idle;
    }

    private boolean ask(Page page) {
        StreamShard shard = page.home.arena.shard;
        return shard.timeline.newestTakeable >= 0 && shard.findIdle(page) && isOld(shard.timeline, page.freedAt);
    }

    private static boolean isOld(StreamTimeline giver, long freedAt) {
        if (freedAt > giver.newestTakeable) {
            giver.tooNew = Math.max(giver.tooNew, freedAt);
            return false;
        }
        return true;
    }

    /// The page is somewhere else now.
    void taken(Page page) {
        page.idle = false;
    }

    /// All idle pages, the largest first; among equals those that have been idle for longest: they are the least
    /// likely to be wanted where they are. Some may have been [taken][#has].
    List<Page> bySize() {
        count();
        if (!sorted) {
            sorted = true;
            pages.sort(
                    Comparator.<Page>comparingLong(page -> -page.byteSize).thenComparingLong(page -> page.idleSince));
        }
        return pages;
    }

    private void count() {
        if (counted) {
            return;
        }
        counted = true;
        sorted = false;
        census++;
        pages.clear();
        for (StreamShard shard : shards) {
            if (shard.timeline.newestTakeable >= 0) {
                shard.findIdle(this);
            }
        }
    }

    /// Called back by a shard: one of its free blocks.
    void addAll(PageArena arena, int block, long from, long to, long freedAt) {
        if (!isOld(arena.shard.timeline, freedAt)) {
            return;
        }
        for (long at = arena.slotStart(from); at < to; ) {
            Mapping mapping = Objects.requireNonNull(arena.mappingAt(at));
            if (mapping.address >= from && mapping.end() <= to && mapping.page.pins.isEmpty()) {
                add(mapping.page, block, freedAt);
            }
            at = mapping.end();
        }
    }

    private void add(Page page, int block, long freedAt) {
        if (page.askedIn == number && !page.idle) {
            return;
        }
        if (page.countedIn != census - 1) {
            page.idleSince = census;
        }
        page.countedIn = census;
        page.askedIn = number;
        page.idle = true;
        page.idleBlock = block;
        page.freedAt = freedAt;
        pages.add(page);
    }
}
