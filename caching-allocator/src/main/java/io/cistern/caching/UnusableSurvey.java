package io.cistern.caching;

import io.cistern.caching.internal.base.CacheStat;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageOwner;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.diagnostics.UnusableMemory;
import io.cistern.diagnostics.UnusableMemory.Reason;
import io.cistern.internal.names.StreamNames;
import io.cistern.internal.threads.HeldLock;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// Finds the idle memory of one device's cache and says why it did not serve a request.
///
/// ```
/// reserved = requested + rounding + waiting + idle
/// idle     = pinned + whole pages + whole slots of pages in use + smaller pieces
/// ```
///
/// 1. The counters of each shard show the waiting and the idle bytes.
/// 2. Free blocks on pages are split at the ends of pages: each part belongs to one reason.
/// 3. Idle bytes that no such part explains lie in pieces smaller than a slot, or in a plain segment.
///
/// **Threads.** Used by one thread, which takes the locks of the page table and of the shards. Figures of
/// different shards may be from different moments.
final class UnusableSurvey {
    private final DeviceCache cache;
    private final String settings;
    private final Map<Reason, Map<Long, Long>> bytes = new EnumMap<>(Reason.class);

    /// @param settings the settings that keep pieces of idle memory apart, and what to set instead
    UnusableSurvey(DeviceCache cache, List<String> settings) {
        this.cache = cache;
        this.settings = String.join("; ", settings);
    }

    /// Returns the idle memory by reason and stream, the most bytes first.
    List<UnusableMemory> list() {
        Map<Long, Long> explained = new TreeMap<>();
        PageTable table = cache.growth.pageTable().orElse(null);
        if (table != null) {
            surveyPages(table, explained);
        }
        surveyShards(table == null ? Reason.BESIDE_LIVE_BLOCKS : Reason.SMALLER_THAN_A_PAGE, explained);
        List<UnusableMemory> found = new ArrayList<>();
        bytes.forEach((reason, streams) -> streams.forEach((stream, byteSize) -> {
            if (byteSize > 0) {
                String holder = reason == Reason.ROUNDING ? "" : StreamNames.of(stream);
                found.add(new UnusableMemory(reason, byteSize, holder, remedy(reason)));
            }
        }));
        found.sort(Comparator.comparingLong(UnusableMemory::byteSize).reversed());
        return found;
    }

    private void surveyPages(PageTable table, Map<Long, Long> explained) {
        try (HeldLock _ = table.hold()) {
            for (PageOwner owner : table.owners) {
                long stream = owner.timeline().key;
                owner.findIdle((arena, from, to) -> split(stream, arena, from, to, explained));
            }
        }
    }

    private void split(long stream, PageArena arena, long from, long to, Map<Long, Long> explained) {
        for (long at = from; at < to; ) {
            Mapping home = arena.homeAt(at);
            long end = Math.min(to, home.end);
            boolean isWhole = at == home.address && end == home.end;
            long slots = Math.max(0, arena.slotStart(end + 1 - arena.slotBytes) - arena.slotStart(at));
            long byteSize = isWhole ? end - at : slots;
            if (!home.page.isAsleep() && !home.page.isOnHost() && byteSize > 0) {
                add(reason(home.page, isWhole), stream, byteSize);
                explained.merge(stream, byteSize, Long::sum);
            }
            at = end;
        }
    }

    private static Reason reason(Page page, boolean isWhole) {
        if (page.isPinned()) {
            return Reason.CAPTURED;
        }
        return isWhole ? Reason.IDLE_ELSEWHERE : Reason.BESIDE_LIVE_BLOCKS;
    }

    private void surveyShards(Reason ofTheRest, Map<Long, Long> explained) {
        ShardTotals all = new ShardTotals();
        for (Shard shard : cache.shards.all()) {
            ShardTotals totals = new ShardTotals();
            shard.withCounters(totals::add);
            all.add(totals);
            long active = totals.current(CacheStat.ACTIVE_BYTES);
            add(Reason.WAITING, shard.key, active - totals.current(CacheStat.ALLOCATED_BYTES));
            add(ofTheRest, shard.key, totals.current(CacheStat.RESERVED_BYTES) - active);
        }
        explained.forEach((stream, byteSize) -> add(ofTheRest, stream, -byteSize));
        cache.threadCaches.addTo(all, all);
        long rounded = all.current(CacheStat.ALLOCATED_BYTES) - all.current(CacheStat.REQUESTED_BYTES);
        add(Reason.ROUNDING, 0, rounded);
    }

    private void add(Reason reason, long stream, long byteSize) {
        bytes.computeIfAbsent(reason, _ -> new TreeMap<>()).merge(stream, byteSize, Long::sum);
    }

    private String remedy(Reason reason) {
        return switch (reason) {
            case BESIDE_LIVE_BLOCKS, IDLE_ELSEWHERE -> settings;
            case WAITING -> "free blocks on the stream that used them last, or synchronise it before the free";
            case CAPTURED -> "closing the graph releases it";
            case SMALLER_THAN_A_PAGE, ROUNDING, OTHER_ALLOCATOR -> "";
        };
    }
}
