package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.shard.MappingWindow;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.internal.threads.HeldLock;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Claims a window for one request and puts pages under it.
///
/// 1. **Plan**, under the page table's lock: idle pages of aliased blocks will return to them; each hole gets idle
///    pages of other places, or new pages. A page that is taken leaves its giver's free blocks at once.
/// 2. **Act**, without that lock: make the stream wait for the streams that pages come from, then
///    [create and map][NewMappings#map].
/// 3. **Publish**, under the lock again: the pages have their home here.
///
/// If a driver call fails, [#fill] unmaps what it mapped. [#close] then undoes the plan, without a driver call: all
/// pages are where they were. Otherwise nothing is unmapped.
final class WindowFill implements AutoCloseable {
    /// Where the pages for holes come from.
    enum Way {
        /// Created or moved, as the [GrowthPolicy] decides.
        USUAL,
        /// Moved while there are idle pages, then created.
        MOVE,
        /// Always created.
        CREATE
    }

    private final PageTable table;
    private final PageSurvey survey;
    private final GrowthPolicy policy;
    private final Shard shard;
    private final long byteSize;
    private final Way way;

    /// Mappings that their pages return to; the pages are out of their homes' free blocks.
    private final List<Mapping> returning = new ArrayList<>();

    /// Mappings in holes; their idle pages are out of their homes' free blocks.
    private final NewMappings added;

    /// Taken pages of other streams.
    private final ArrayList<Page> foreign = new ArrayList<>(0);

    private @Nullable MappingWindow window;

    private long createdBytes;

    /// Bytes of pages that are new or have their home in other shards.
    private long cameBytes;

    /// Bytes of pages of other streams that are to be mapped here.
    private long movedBytes;

    /// Whether a page is to be created only because no idle page fits.
    boolean lacksIdle;

    /// Whether the device seems to have less memory left than the new pages need.
    private boolean seemsTooMuch;

    /// Where the window's pages end.
    private long end;

    private long address;

    /// Whether the block was handed out, or all was undone.
    private boolean isDone;

    /// Makes a fill that has claimed nothing yet; all that it does from then on can be undone.
    WindowFill(PageTable table, PageSurvey survey, GrowthPolicy policy, Shard shard, long byteSize, Way way) {
        this.table = table;
        this.survey = survey;
        this.policy = policy;
        this.shard = shard;
        this.byteSize = byteSize;
        this.way = way;
        this.added = new NewMappings(table);
    }

    /// Searches the shard again, and allocates a block if one fits.
    boolean find() {
        address = shard.allocateAfterMiss(byteSize);
        return address != 0;
    }

    /// Claims a window; returns false if no free run has one. The caller holds the page table's lock.
    boolean claimWindow() {
        window = shard.claimWindow(byteSize, way == Way.CREATE ? null : survey.usable);
        return window != null;
    }

    /// Plans the pages of the window, under the same lock; returns false if another thread has taken one.
    boolean planPages() {
        MappingWindow claimed = Objects.requireNonNull(window);
        end = claimed.bounds[claimed.count];
        for (int i = 0; i < claimed.count; i++) {
            if (claimed.states[i] == Blocks.ALIASED) {
                Mapping mapping = Objects.requireNonNull(claimed.arena.mappingAt(claimed.bounds[i]));
                if (!survey.has(mapping.page) || !takeIdle(mapping, returning)) {
                    return false;
                }
            }
        }
        for (int i = 0; i < claimed.count; i++) {
            if (claimed.states[i] == Blocks.HOLE) {
                planHole(claimed, claimed.bounds[i], claimed.bounds[i + 1]);
            }
        }
        awaitNewestFirst();
        seemsTooMuch = createdBytes > policy.leftBytes(table.physical.counters.reservedBytes());
        return true;
    }

    /// Puts the page that was freed last before the others: its stream may have waited for theirs, so that waiting for
    /// it covers them.
    private void awaitNewestFirst() {
        int newest = 0;
        for (int i = 1; i < foreign.size(); i++) {
            newest = foreign.get(i).home.freedAt > foreign.get(newest).home.freedAt ? i : newest;
        }
        if (newest > 0) {
            foreign.addFirst(foreign.remove(newest));
        }
    }

    /// Takes an idle page out of its home's free blocks, for a mapping.
    ///
    /// @param into receives the mapping first: a page that was taken is never without one
    private boolean takeIdle(Mapping mapping, List<Mapping> into) {
        Page page = mapping.page;
        Mapping home = page.home;
        foreign.ensureCapacity(foreign.size() + 1);
        into.add(mapping);
        boolean isTaken = false;
        try {
            isTaken = home.owner.takePage(home, shard);
        } finally {
            if (!isTaken) {
                into.removeLast();
            }
        }
        if (isTaken) {
            if (home.owner.timeline() != shard.timeline()) {
                foreign.add(page);
            }
            cameBytes += home.owner.equals(shard) ? 0 : page.byteSize;
        }
        return isTaken;
    }

    private void planHole(MappingWindow claimed, long from, long holeEnd) {
        long wanted = Math.min(holeEnd, claimed.arena.slotStart(claimed.bounds[0] + byteSize));
        int next = 0; // among the idle pages
        long at = from;
        while (at < wanted) {
            next = planPage(claimed, at, wanted - at, holeEnd - at, next);
            at = added.all.getLast().end;
        }
        if (holeEnd == claimed.bounds[claimed.count]) {
            end = at;
        }
    }

    /// Adds a mapping of a page.
    ///
    /// @param next where the search among idle pages continues
    /// @return where it continues after this page
    private int planPage(MappingWindow claimed, long at, long missing, long space, int next) {
        long reserved = table.physical.counters.reservedBytes() + createdBytes;
        long usual = Math.min(policy.pageBytes(shard.isSmall(), reserved), space);
        boolean moves = way != Way.CREATE; // always CREATE where pages must not move
        if (way == Way.USUAL && policy.creates(reserved)) {
            create(claimed, at, usual);
            return next;
        }
        long atMost = Math.min(Sizes.roundUp(missing, policy.unit), space);
        int taken = moves ? take(claimed, at, atMost, next) : Integer.MAX_VALUE;
        if (taken == Integer.MAX_VALUE) {
            lacksIdle |= moves;
            create(claimed, at, Math.min(usual, atMost));
        }
        return taken;
    }

    private void create(MappingWindow claimed, long at, long size) {
        added.all.add(new Page(0, size, claimed.arena, at).home);
        createdBytes += size;
        cameBytes += size;
    }

    /// Takes the largest idle page of at most `atMost` bytes, from index `next` on.
    ///
    /// @return where the search continues; [Integer#MAX_VALUE] if no page fits
    private int take(MappingWindow claimed, long at, long atMost, int next) {
        List<Page> pages = survey.idleBySize();
        int ofOthers = foreign.size();
        for (int i = next; i < pages.size(); i++) {
            Page page = pages.get(i);
            boolean fits = page.byteSize <= atMost && survey.has(page);
            if (fits && takeIdle(new Mapping(page, claimed.arena, at), added.all)) {
                movedBytes += foreign.size() > ofOthers ? page.byteSize : 0;
                return i + 1;
            }
        }
        return Integer.MAX_VALUE;
    }

    /// Whether the stream would have to wait for running work of other streams.
    boolean wouldWait(CrossStreamOrder order) {
        boolean waits = false;
        for (int i = 0; i < foreign.size() && !waits; i++) {
            Mapping home = foreign.get(i).home;
            waits = order.wouldWait(shard.timeline(), home.owner.timeline(), home.freedAt);
        }
        return waits;
    }

    /// Acts and publishes. If that fails, nothing new is mapped, except what the driver would not unmap.
    void fill(CrossStreamOrder order) {
        MappingWindow claimed = Objects.requireNonNull(window);
        try {
            try (HeldLock _ = table.hold()) { // the arena's map grows: a thread that pins pages may be reading it
                shard.reserve(claimed.arena, end);
                added.reserve();
            }
            if (seemsTooMuch && added.all.size() > 1) {
                table.physical.probe(createdBytes);
            }
            for (Page page : foreign) {
                order.precede(shard.timeline(), page.home.owner.timeline(), page.home.freedAt);
            }
            added.map();
            publish(claimed);
        } catch (RuntimeException | Error failure) {
            if (address == 0) {
                added.unmap(failure);
            }
            throw failure;
        }
    }

    private void publish(MappingWindow claimed) {
        try (HeldLock _ = table.hold()) {
            List<Mapping> mappings = added.all;
            for (int i = 0; i < mappings.size(); i++) {
                Mapping mapping = mappings.get(i);
                table.ranges.put(mapping.arena, mapping.address, mapping.page.byteSize);
            }
            address = shard.fillAndAllocate(claimed, mappings, cameBytes, end, byteSize);
            for (int i = 0; i < returning.size(); i++) {
                table.comesHome(returning.get(i));
            }
            added.publish();
            policy.moved(movedBytes);
            if (createdBytes > 0) {
                table.physical.counters.count(CacheEvent.DEVICE_ALLOC);
            }
        }
    }

    /// Hands the block to the caller, which owns it from now on; returns its address.
    long keep(CrossStreamOrder order) {
        boolean isMiss = !added.all.isEmpty() || !foreign.isEmpty();
        table.physical.counters.count(isMiss ? CacheEvent.PAGES_MISS : CacheEvent.PAGES_HIT);
        if (isMiss) {
            table.aliases.unmapOld(order);
        }
        isDone = true;
        return address;
    }

    /// Unless the block was handed out, frees it, or undoes the plan: all pages are where they were. Makes
    /// no driver call.
    @Override
    public void close() {
        if (isDone) {
            return;
        }
        isDone = true;
        if (address != 0) {
            shard.giveUp(Objects.requireNonNull(table.ranges.find(address)), address);
            return;
        }
        try (HeldLock _ = table.hold()) {
            undo();
        }
    }

    private void undo() {
        for (int i = 0; i < returning.size(); i++) {
            Mapping home = returning.get(i).page.home;
            home.owner.returnPage(home, shard);
        }
        if (window != null) {
            shard.abandon(window);
        }
        added.undo(shard);
    }
}
