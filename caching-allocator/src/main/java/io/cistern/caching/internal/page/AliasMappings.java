package io.cistern.caching.internal.page;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.cuda.CudaException;
import io.cistern.internal.threads.HeldLock;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Lists the aliased mappings of a device (those of pages with their home elsewhere), in the order in which the
/// pages left them, and unmaps old ones.
///
/// A program that repeats reuses the same few mappings. A program that doesn't, for example one whose caches
/// grow, would add mappings without end, and each search has to walk past them. So:
///
/// 1. Up to [#MAX_A_PAGE] per page are kept.
/// 2. Above that, the mappings that were left longest ago are unmapped, if the work that used the page through them
///    has finished: it was enqueued before the free that made the page idle there ([Mapping#freedAt]).
/// 3. Until it has finished, there may be more mappings. A fence recorded now shows later when it has.
///
/// **Invariant**: the list contains exactly the aliased mappings, except those that a rollback left.
///
/// Guarded by the lock of the [PageTable], which is not held while the driver unmaps: those mappings are claimed.
public final class AliasMappings {
    /// Enough for recorded and generated programs that repeat. A search walks past all of them.
    public static final int MAX_A_PAGE = 32;

    private final PageTable table;
    private @Nullable Mapping oldest;
    private @Nullable Mapping newest;
    private int count;

    AliasMappings(PageTable table) {
        this.table = table;
    }

    /// Adds a mapping that its page leaves. The caller holds the table's lock.
    void left(Mapping home) {
        home.aliasedBefore = newest;
        if (newest == null) {
            oldest = home;
        } else {
            newest.aliasedAfter = home;
        }
        newest = home;
        count++;
    }

    /// Removes a mapping that its page returns to, or that is unmapped. The caller holds the table's lock.
    void remove(Mapping mapping) {
        if (mapping.aliasedBefore == null && oldest != mapping) {
            return; // left by a rollback
        }
        if (mapping.aliasedBefore == null) {
            oldest = mapping.aliasedAfter;
        } else {
            mapping.aliasedBefore.aliasedAfter = mapping.aliasedAfter;
        }
        if (mapping.aliasedAfter == null) {
            newest = mapping.aliasedBefore;
        } else {
            mapping.aliasedAfter.aliasedBefore = mapping.aliasedBefore;
        }
        mapping.aliasedBefore = null;
        mapping.aliasedAfter = null;
        count--;
    }

    /// Unmaps all aliased mappings of a page.
    ///
    /// @return false if some are left, because another thread is unmapping one now, or the source needs one
    /// @throws CudaException if the driver refuses
    public boolean unmap(Page page) {
        return claimAndUnmap(List.of(page), _ -> true, true);
    }

    /// Unmaps the aliased mappings in an owner's arenas, after all work of its stream.
    ///
    /// @return whether all mappings that this call claimed are unmapped
    /// @throws CudaException if the driver refuses
    @SuppressWarnings("ReferenceEquality") // there is one object for each owner
    public boolean unmap(PageOwner owner) {
        return claimAndUnmap(table.all, each -> each.owner == owner, false);
    }

    /// @param all whether to unmap only if all mappings can be claimed
    private boolean claimAndUnmap(List<Page> pages, Predicate<Mapping> which, boolean all) {
        List<Mapping> claimed = new ArrayList<>();
        try {
            return (claim(pages, which, claimed) || !all) && unmap(claimed);
        } finally {
            unclaim(claimed);
        }
    }

    private boolean claim(List<Page> pages, Predicate<Mapping> which, List<Mapping> claimed) {
        boolean areClaimed = true;
        try (HeldLock _ = table.hold()) {
            for (int i = 0; i < pages.size(); i++) {
                List<Mapping> mappings = pages.get(i).mappings;
                for (int j = 0; j < mappings.size(); j++) {
                    Mapping mapping = mappings.get(j);
                    areClaimed &= mapping.isHome() || !which.test(mapping) || tryClaim(mapping, claimed);
                }
            }
        }
        return areClaimed;
    }

    /// @param claimed receives the mapping before it is claimed, so that it is always unclaimed
    private static boolean tryClaim(Mapping mapping, List<Mapping> claimed) {
        claimed.add(mapping);
        if (!mapping.owner.tryClaim(mapping)) {
            claimed.removeLast();
            return false;
        }
        return true;
    }

    /// Unmaps old mappings if there are too many. If the driver refuses, they stay: a refusal must not fail
    /// an allocation.
    public void unmapOld(CrossStreamOrder order) {
        // Read without the lock: a mapping added now waits for the next miss.
        if (count <= MAX_A_PAGE * table.all.size()) {
            return;
        }
        Map<StreamTimeline, Long> streams = streamsOfOld();
        List<Mapping> claimed = new ArrayList<>();
        try {
            streams.forEach(order::ask);
            claimOld(order, claimed);
            unmap(claimed);
        } catch (CudaException refusal) {
            System.getLogger(AliasMappings.class.getName())
                    .log(Level.DEBUG, "old mappings stay for now: " + refusal.getMessage());
        } finally {
            unclaim(claimed);
        }
    }

    /// Returns the streams of the excess mappings, each with the time of the latest free among them.
    private Map<StreamTimeline, Long> streamsOfOld() {
        Map<StreamTimeline, Long> streams = new HashMap<>();
        try (HeldLock _ = table.hold()) {
            forEachOld(each -> streams.merge(each.owner.timeline(), each.freedAt, Math::max));
        }
        return streams;
    }

    private void claimOld(CrossStreamOrder order, List<Mapping> claimed) {
        try (HeldLock _ = table.hold()) {
            forEachOld(each -> {
                if (order.isPassed(each.owner.timeline(), each.freedAt)) {
                    tryClaim(each, claimed);
                }
            });
        }
    }

    private void forEachOld(Consumer<Mapping> action) {
        Mapping each = oldest;
        for (int left = count - MAX_A_PAGE * table.all.size(); left > 0 && each != null; left--) {
            action.accept(each);
            each = each.aliasedAfter;
        }
    }

    /// @return whether all are unmapped; if not, the source needs the others where they are
    private boolean unmap(List<Mapping> claimed) {
        boolean areGone = true;
        for (int i = 0; i < claimed.size(); i++) {
            areGone &= unmap(claimed.get(i));
        }
        return areGone;
    }

    private boolean unmap(Mapping mapping) {
        if (!table.physical.tryUnmap(mapping)) {
            return false;
        }
        table.ranges.remove(mapping.arena, mapping.address, mapping.page.byteSize);
        try (HeldLock _ = table.hold()) {
            remove(mapping);
            table.unmapped(mapping);
            table.physical.counters.count(CacheEvent.PAGE_UNALIASED);
        }
        return true;
    }

    /// Makes the mappings that were not unmapped aliased again.
    private void unclaim(List<Mapping> claimed) {
        try (HeldLock _ = table.hold()) {
            for (int i = 0; i < claimed.size(); i++) {
                Mapping each = claimed.get(i);
                if (each.entered) {
                    each.owner.unclaim(each, each.isStuck);
                }
            }
        }
    }

    /// @param known the number of aliased mappings of all pages, without those that a rollback left
    /// @throws IllegalStateException if the list is wrong
    void checkInvariants(long known) {
        int listed = 0;
        Mapping before = null;
        for (Mapping each = oldest; each != null; each = each.aliasedAfter) {
            Invariant.check(!each.isHome(), "a listed mapping is aliased", each.address);
            Invariant.check(each.aliasedBefore == before, "the list is linked both ways", each.address);
            before = each;
            listed++;
        }
        Invariant.check(newest == before, "the list ends with the newest", listed);
        Invariant.check(listed == count && listed == known, "all aliased mappings are listed", known);
    }
}
