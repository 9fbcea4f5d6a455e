package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageOwner;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Predicate;

/// Surveys a device for one attempt to grow: the live bytes, and the idle pages that may serve the stream. A page can
/// change at any time, so a taker asks its owner [again][PageOwner#takePage].
///
/// Guarded by the lock of the [PageTable][io.cistern.caching.internal.page.PageTable].
final class PageSurvey implements PageOwner.FreeBlocks {
    final Predicate<Page> usable = this::has;
    private final CrossStreamOrder order;
    private final List<Page> pages = new ArrayList<>();
    private List<PageOwner> shards = List.of();
    private long number;
    /// Live bytes of all shards in the survey.
    long liveBytes;
    /// The number of shards with large live blocks; a stream has one such shard.
    int liveLarge;
    private boolean sorted;

    PageSurvey(CrossStreamOrder order) {
        this.order = order;
    }

    /// Surveys all shards on behalf of one.
    ///
    /// @param waits whether the taker's stream may be made to wait for others
    void begin(List<PageOwner> shards, PageOwner taker, boolean waits) {
        number++;
        this.shards = shards;
        sorted = false;
        liveBytes = 0;
        liveLarge = 0;
        for (PageOwner shard : shards) {
            shard.lookedAt();
            StreamTimeline giver = shard.timeline();
            if (giver.surveyNumber != number) {
                giver.surveyNumber = number;
                giver.newestTakeable = order.newestTakeable(taker.timeline(), giver, waits);
            }
            long live = shard.liveBytes();
            liveBytes += live;
            liveLarge += live > 0 && !shard.isSmall() ? 1 : 0;
        }
    }

    /// Whether a page is idle and may be taken. An [aliased][PageOwner#takePage] block has no idle page.
    boolean has(Page page) {
        Mapping home = page.home;
        return home.idle && !page.isPinned() && home.freedAt <= home.owner.timeline().newestTakeable;
    }

    /// Returns the idle pages that may be taken, the largest first. Among equals, those idle for longest come first,
    /// since
    /// they are the least likely to be needed where they are. Some may have been [taken][#has].
    List<Page> idleBySize() {
        if (!sorted) {
            sorted = true;
            pages.clear();
            for (PageOwner shard : shards) {
                if (shard.timeline().newestTakeable >= 0) {
                    shard.findIdle(this);
                }
            }
            pages.sort(PageSurvey::compare);
        }
        return pages;
    }

    private static int compare(Page one, Page other) {
        int bySize = Long.compare(other.byteSize, one.byteSize);
        return bySize != 0 ? bySize : Long.compare(one.seenFreedAt, other.seenFreedAt);
    }

    /// Adds the idle pages of a shard's free block; called by the shard.
    @Override
    public void add(PageArena arena, long from, long to) {
        for (long at = arena.slotStart(from); at < to; ) {
            Mapping mapping = Objects.requireNonNull(arena.mappingAt(at));
            if (mapping.address >= from && mapping.end <= to && has(mapping.page)) {
                mapping.page.seenFreedAt = mapping.freedAt;
                pages.add(mapping.page);
            }
            at = mapping.end;
        }
    }
}
