package io.cistern.caching.internal.page;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.cuda.CudaException;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The mappings of pages that are at home elsewhere, in the order in which the pages left them, and how they end.
///
/// A program that repeats finds the same few again. One that does not, say with caches that grow, would add
/// mappings for ever, and a search has to walk past them. So:
///
/// 1. there may be [#MAX_A_PAGE] for each page, and [#SPARE] more before anything is done;
/// 2. then those left longest ago go, down to that number, if the work that used the page through them has
/// finished: it came before the free that made the page idle there ([Mapping#freedAt]);
/// 3. while it has not, more are added; a fence that is recorded now tells later.
///
/// **Invariant**: in the list are exactly the aliased mappings that no roll-back left.
///
/// Guarded by the lock of the [PageTable], which is not held across driver calls; mappings that are about to end
/// are claimed.
public final class AliasMappings {
    /// More than recorded programs have, by default and with `fit=tight`.
    private static final int MAX_A_PAGE = 16;

    /// Asking how far a stream is costs a driver call, to unmap another: so not one by one, and not many at once.
    private static final int SPARE = 16;

    private final PageTable table;
    private @Nullable Mapping oldest;
    private @Nullable Mapping newest;
    private int count;

    AliasMappings(PageTable table) {
        this.table = table;
    }

    /// A page leaves its home. Under the lock.
    void left(Mapping home) {
        home.lentBefore = newest;
        if (newest == null) {
            oldest = home;
        } else {
            newest.lentAfter = home;
        }
        newest = home;
        count++;
    }

    /// A page comes back to a mapping that it left, or the mapping is gone. Under the lock.
    void remove(Mapping mapping) {
        if (mapping.lentBefore == null && oldest != mapping) {
            return; // left by a roll-back
        }
        if (mapping.lentBefore == null) {
            oldest = mapping.lentAfter;
        } else {
            mapping.lentBefore.lentAfter = mapping.lentAfter;
        }
        if (mapping.lentAfter == null) {
            newest = mapping.lentBefore;
        } else {
            mapping.lentAfter.lentBefore = mapping.lentBefore;
        }
        mapping.lentBefore = null;
        mapping.lentAfter = null;
        count--;
    }

    /// Unmaps a page wherever it is aliased.
    ///
    /// @return false if some are left: somebody else is unmapping one at this moment, or needs it where it is
    /// @throws CudaException if the driver refuses
    public boolean unmap(Page page) {
        List<@Nullable Mapping> claimed = new ArrayList<>();
        try {
            return claimAll(page, claimed) && unmap(claimed);
        } finally {
            release(claimed);
        }
    }

    private boolean claimAll(Page page, List<@Nullable Mapping> claimed) {
        table.lock();
        try {
            for (int i = 0; i < page.mappings.size(); i++) {
                Mapping mapping = page.mappings.get(i);
                if (!mapping.isHome() && !tryClaim(mapping, claimed)) {
                    return false;
                }
            }
            return true;
        } finally {
            table.unlock();
        }
    }

    /// @param claimed gets it first, so that it is released whatever happens
    private static boolean tryClaim(Mapping mapping, List<@Nullable Mapping> claimed) {
        claimed.add(mapping);
        if (!mapping.owner.tryClaim(mapping)) {
            claimed.removeLast();
            return false;
        }
        return true;
    }

    /// Unmaps what an owner's arenas still have of pages at home elsewhere, after all work of its stream.
    ///
    /// @return whether all of it that is unmapped here is gone
    /// @throws CudaException if the driver refuses
    public boolean unmap(PageOwner owner) {
        List<@Nullable Mapping> claimed = new ArrayList<>();
        try {
            claimAll(owner, claimed);
            return unmap(claimed);
        } finally {
            release(claimed);
        }
    }

    @SuppressWarnings("ReferenceEquality") // There is one object for each.
    private void claimAll(PageOwner owner, List<@Nullable Mapping> claimed) {
        table.lock();
        try {
            for (int i = 0; i < table.all().size(); i++) {
                Page page = table.all().get(i);
                for (int j = 0; j < page.mappings.size(); j++) {
                    Mapping mapping = page.mappings.get(j);
                    if (mapping.owner == owner && !mapping.isHome()) {
                        tryClaim(mapping, claimed);
                    }
                }
            }
        } finally {
            table.unlock();
        }
    }

    /// Takes old mappings away if there are too many. A refusal is no concern of who allocates: then they stay.
    public void unmapOld(CrossStreamOrder order) {
        Map<StreamTimeline, Long> streams = streamsOfOld();
        if (streams.isEmpty()) {
            return;
        }
        List<@Nullable Mapping> claimed = new ArrayList<>();
        try {
            streams.forEach(order::ask);
            claimOld(order, claimed);
            unmap(claimed);
        } catch (CudaException refusal) {
            System.getLogger(AliasMappings.class.getName())
                    .log(Level.DEBUG, "old mappings stay for now: " + refusal.getMessage());
        } finally {
            release(claimed);
        }
    }

    /// The streams that left the mappings that are too many, each with the time of the last free among them.
    private Map<StreamTimeline, Long> streamsOfOld() {
        Map<StreamTimeline, Long> streams = new HashMap<>();
        table.lock();
        try {
            if (count > most() + SPARE) {
                forEachOld(each -> streams.merge(each.owner.timeline(), each.freedAt, Math::max));
            }
        } finally {
            table.unlock();
        }
        return streams;
    }

    private void claimOld(CrossStreamOrder order, List<@Nullable Mapping> claimed) {
        table.lock();
        try {
            forEachOld(each -> {
                if (order.isPassed(each.owner.timeline(), each.freedAt)) {
                    tryClaim(each, claimed);
                }
            });
        } finally {
            table.unlock();
        }
    }

    private int most() {
        return MAX_A_PAGE * table.all().size();
    }

    private void forEachOld(Consumer<Mapping> action) {
        Mapping each = oldest;
        for (int left = count - most(); left > 0 && each != null; left--) {
            action.accept(each);
            each = each.lentAfter;
        }
    }

    /// Unmaps claimed mappings, and takes those that are gone out of the list.
    ///
    /// @return whether all are gone; the others are needed where they are
    private boolean unmap(List<@Nullable Mapping> claimed) {
        boolean areGone = true;
        for (int i = 0; i < claimed.size(); i++) {
            boolean isGone = unmap(Objects.requireNonNull(claimed.get(i)));
            if (isGone) {
                claimed.set(i, null);
            }
            areGone &= isGone;
        }
        return areGone;
    }

    private boolean unmap(Mapping mapping) {
        if (!table.pages.tryUnmap(mapping)) {
            return false;
        }
        table.ranges.remove(mapping.arena, mapping.address, mapping.page.byteSize);
        gone(mapping);
        return true;
    }

    private void gone(Mapping mapping) {
        table.lock();
        try {
            remove(mapping);
            table.unmapped(mapping);
            table.pages.reserved().counters.countAlone(CacheEvent.PAGE_UNALIASED);
        } finally {
            table.unlock();
        }
    }

    /// Those that are not gone are aliased as before.
    private void release(List<@Nullable Mapping> claimed) {
        table.lock();
        try {
            for (int i = 0; i < claimed.size(); i++) {
                Mapping each = claimed.get(i);
                if (each != null) {
                    each.owner.unclaim(each, each.isStuck);
                }
            }
        } finally {
            table.unlock();
        }
    }

    /// Checks the list.
    ///
    /// @param known aliased mappings of all pages but those that a roll-back left
    /// @throws IllegalStateException if it is not what it must be
    void checkInvariants(long known) {
        int listed = 0;
        Mapping before = null;
        for (Mapping each = oldest; each != null; each = each.lentAfter) {
            Invariant.check(!each.isHome(), "a listed mapping is aliased", each.address);
            Invariant.check(each.lentBefore == before, "the list is linked both ways", each.address);
            before = each;
            listed++;
        }
        Invariant.check(newest == before, "the list ends with the newest", listed);
        Invariant.check(listed == count && listed == known, "all aliased mappings are listed", known);
    }
}
