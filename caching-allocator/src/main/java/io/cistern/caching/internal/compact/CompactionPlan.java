package io.cistern.caching.internal.compact;

import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageOwner;
import io.cistern.caching.internal.page.PageTable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// Chooses pages to be replaced by smaller ones, so that enough memory becomes free.
///
/// 1. Look at all free blocks. If a free block covers whole slots of a page, but not all of it, these slots
///    could become free.
/// 2. Take the pages that have the fewest bytes to copy for each byte that becomes free, until enough does.
/// 3. Leave out pages that turn out not to be needed, those with the most bytes to copy first.
///
/// A plan is a guess: blocks are allocated and freed meanwhile, so a thread that carries it out claims
/// the memory that it needs.
public final class CompactionPlan {
    private final List<SparsePage> pages;

    private CompactionPlan(List<SparsePage> pages) {
        this.pages = pages;
    }

    /// Makes a plan.
    ///
    /// @param wanted the bytes that must become free; `Long.MAX_VALUE` for as many as possible
    /// @param maxKept the most bytes to copy
    public static CompactionPlan of(PageTable table, long wanted, long maxKept) {
        List<SparsePage> found = sparse(table);
        found.sort(Comparator.comparingDouble(each -> (double) each.keptBytes() / each.freeBytes()));
        List<SparsePage> chosen = new ArrayList<>();
        long free = 0;
        long kept = 0;
        for (SparsePage each : found) {
            if (free < wanted && kept + each.keptBytes() <= maxKept) {
                chosen.add(each);
                free += each.freeBytes();
                kept += each.keptBytes();
            }
        }
        leaveOut(chosen, free - wanted);
        chosen.sort(Comparator.comparingLong(SparsePage::keptBytes)); // the one that needs the least room first
        return new CompactionPlan(chosen);
    }

    private static void leaveOut(List<SparsePage> chosen, long tooMuch) {
        long left = tooMuch;
        List<SparsePage> costly = new ArrayList<>(chosen);
        costly.sort(Comparator.comparingLong(SparsePage::keptBytes).reversed());
        for (SparsePage each : costly) {
            if (each.freeBytes() <= left) {
                left -= each.freeBytes();
                chosen.remove(each);
            }
        }
    }

    private static List<SparsePage> sparse(PageTable table) {
        Map<Page, SparsePage> found = new HashMap<>();
        table.lock();
        try {
            for (PageOwner owner : table.owners()) {
                owner.findIdle((arena, from, to) -> add(found, arena, from, to));
            }
        } finally {
            table.unlock();
        }
        found.values().removeIf(each -> each.keptBytes() == 0);
        return new ArrayList<>(found.values());
    }

    private static void add(Map<Page, SparsePage> found, PageArena arena, long from, long to) {
        long end = arena.slotStart(to + 1 - arena.slotBytes);
        for (long at = arena.slotStart(from); at < end; ) {
            Mapping home = Objects.requireNonNull(arena.mappingAt(at));
            long freeEnd = Math.min(end, home.end());
            if (!home.page.isPinned() && home.isHome()) {
                found.computeIfAbsent(home.page, SparsePage::new).addFree(at, freeEnd);
            }
            at = home.end();
        }
    }

    /// Bytes that will become free.
    public long freeBytes() {
        return pages.stream().mapToLong(SparsePage::freeBytes).sum();
    }

    /// Bytes to copy.
    public long keptBytes() {
        return pages.stream().mapToLong(SparsePage::keptBytes).sum();
    }

    List<SparsePage> pages() {
        return pages;
    }
}
