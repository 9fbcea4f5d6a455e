package io.cistern.caching.internal.compact;

import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageOwner;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.internal.threads.HeldLock;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

/// Chooses pages to be replaced by smaller ones, so that enough memory becomes free.
///
/// 1. Look at all free blocks. If a free block covers whole slots of a page, but not all of it, these slots
///    could become free.
/// 2. Take the pages with the fewest bytes to copy per byte freed, if there is room for the copy, until
///    enough becomes free. A replaced page makes room for the next. If there is no room for any, and the
///    request would not fit, take the page with the fewest bytes to copy, by way of the host.
/// 3. Continue, if possible, until there is also room to copy any one of the pages found: without room, the
///    next plan could not begin.
/// 4. Drop pages that turn out not to be needed, those with the most bytes to copy first.
///
/// A plan is a guess: blocks are allocated and freed meanwhile, so a thread that carries it out claims
/// the memory that it needs.
public final class CompactionPlan {
    /// In the order in which they are replaced: `kept of each ≤ room + free of all before it`, except for
    /// those copied by way of the host.
    final List<SparsePage> pages = new ArrayList<>();

    /// Pages whose bytes wait on the host, since there is no room for a copy.
    final Set<SparsePage> byHost = new HashSet<>();

    private final long room;

    private CompactionPlan(long room) {
        this.room = room;
    }

    /// Makes a plan.
    ///
    /// @param lacking the bytes that must become free; `Long.MAX_VALUE` for as many as possible
    /// @param maxKept the most bytes to copy
    /// @param room the bytes that new pages can take before any page is replaced
    /// @param canUseHost whether bytes can wait on the host where there is no room
    public static CompactionPlan of(PageTable table, long lacking, long maxKept, long room, boolean canUseHost) {
        return choose(sparse(table), lacking, maxKept, room, canUseHost);
    }

    /// Chooses among the pages that have live blocks and whole free slots; modifies the list.
    static CompactionPlan choose(List<SparsePage> found, long lacking, long maxKept, long room, boolean canUseHost) {
        long copyBytes = found.stream().mapToLong(SparsePage::keptBytes).max().orElse(0);
        long wanted = Math.min(lacking, Long.MAX_VALUE - copyBytes) + copyBytes;
        found.sort(Comparator.comparingDouble(each -> (double) each.keptBytes() / each.freeBytes()));
        CompactionPlan plan = new CompactionPlan(room);
        while (plan.freeBytes() < wanted
                && (plan.takeSome(found, wanted, maxKept)
                        || (canUseHost && plan.freeBytes() < lacking && plan.takeOne(found, maxKept)))) {
            found.removeAll(Set.copyOf(plan.pages));
        }
        plan.leaveOut(plan.freeBytes() - wanted);
        return plan;
    }

    /// Takes the pages that there is room for, in their order.
    private boolean takeSome(List<SparsePage> found, long wanted, long maxKept) {
        int before = pages.size();
        long free = freeBytes();
        long kept = keptBytes();
        for (SparsePage each : found) {
            if (free < wanted && each.keptBytes() <= room + free && kept + each.keptBytes() <= maxKept) {
                pages.add(each);
                free += each.freeBytes();
                kept += each.keptBytes();
            }
        }
        return pages.size() > before;
    }

    /// Takes the page with the fewest bytes to copy, though there is no room for them.
    private boolean takeOne(List<SparsePage> found, long maxKept) {
        long left = maxKept - keptBytes();
        Optional<SparsePage> fewest = found.stream()
                .filter(each -> each.keptBytes() <= left)
                .min(Comparator.comparingLong(SparsePage::keptBytes));
        fewest.ifPresent(byHost::add);
        fewest.ifPresent(pages::add);
        return fewest.isPresent();
    }

    private void leaveOut(long tooMuch) {
        long left = tooMuch;
        List<SparsePage> costly = new ArrayList<>(pages);
        costly.sort(Comparator.comparingLong(SparsePage::keptBytes).reversed());
        for (SparsePage each : costly) {
            if (each.freeBytes() <= left && hasRoomWithout(each)) {
                left -= each.freeBytes();
                pages.remove(each);
            }
        }
    }

    private boolean hasRoomWithout(SparsePage leftOut) {
        long free = 0;
        for (int i = 0; i < pages.size(); i++) {
            SparsePage each = pages.get(i);
            if (each != leftOut && !byHost.contains(each) && each.keptBytes() > room + free) {
                return false;
            }
            free += each == leftOut ? 0 : each.freeBytes();
        }
        return true;
    }

    private static List<SparsePage> sparse(PageTable table) {
        Map<Page, SparsePage> found = new LinkedHashMap<>();
        try (HeldLock _ = table.hold()) {
            for (PageOwner owner : table.owners) {
                owner.findIdle((arena, from, to) -> add(found, arena, from, to));
            }
        }
        found.values().removeIf(each -> each.keptBytes() == 0);
        return new ArrayList<>(found.values());
    }

    private static void add(Map<Page, SparsePage> found, PageArena arena, long from, long to) {
        long end = arena.slotStart(to + 1 - arena.slotBytes);
        for (long at = arena.slotStart(from); at < end; ) {
            Mapping home = Objects.requireNonNull(arena.mappingAt(at));
            long freeEnd = Math.min(end, home.end);
            if (!home.page.isPinned() && home.isHome()) {
                found.computeIfAbsent(home.page, SparsePage::new).addFree(at, freeEnd);
            }
            at = home.end;
        }
    }

    public long freeBytes() {
        return pages.stream().mapToLong(SparsePage::freeBytes).sum();
    }

    public long keptBytes() {
        return pages.stream().mapToLong(SparsePage::keptBytes).sum();
    }

    public int pageCount() {
        return pages.size();
    }
}
