package io.cistern.caching;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;

/// One look at all shards of a device: which pages lie wholly in free blocks and may serve a stream, and how
/// many bytes
/// are live. A shard is looked at under its lock and may change at once; so whoever takes a page asks
/// [again][StreamShard#lend].
///
/// Guarded by the lock of the [PageTable].
final class IdlePages {
    private final List<Page> pages = new ArrayList<>();
    private long number;
    private long liveBytes;
    private long newest;
    private long tooNew;
    private boolean sorted;

    /// Looks at shards on behalf of one of them.
    void look(List<StreamShard> shards, StreamShard taker, CrossStreamOrder order) {
        number++;
        pages.clear();
        sorted = false;
        liveBytes = 0;
        for (StreamShard shard : shards) {
            if (order.mayTake(taker.timeline, shard.timeline)) {
                newest = order.newestTakeable(taker.timeline, shard.timeline);
                tooNew = -1;
                shard.findIdle(this);
                order.mark(shard.timeline, tooNew);
            } else {
                shard.countLive(this);
            }
        }
    }

    void addLive(long byteSize) {
        liveBytes += byteSize;
    }

    /// Called back by a shard: one of its free blocks.
    void addAll(PageArena arena, int block, long from, long to, long freedAt) {
        if (freedAt > newest) {
            tooNew = Math.max(tooNew, freedAt);
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
        if (page.seenIdle != number - 1) {
            page.idleSince = number;
        }
        page.seenIdle = number;
        page.idleBlock = block;
        page.freedAt = freedAt;
        pages.add(page);
    }

    /// The number of this look.
    long number() {
        return number;
    }

    /// Whether this look found a page idle and nobody took it since.
    boolean has(Page page) {
        return page.seenIdle == number;
    }

    /// The page is somewhere else now.
    void taken(Page page) {
        page.seenIdle = 0;
    }

    /// All idle pages, the largest first; among equals those that have been idle for longest: they are the
    /// least likely
    /// to be wanted where they are. Some may have been [taken][#has].
    List<Page> bySize() {
        if (!sorted) {
            sorted = true;
            pages.sort(
                    Comparator.<Page>comparingLong(page -> -page.byteSize).thenComparingLong(page -> page.idleSince));
        }
        return pages;
    }

    /// Live bytes of all shards.
    long liveBytes() {
        return liveBytes;
    }
}
