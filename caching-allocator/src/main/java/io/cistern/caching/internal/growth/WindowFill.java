package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.page.PhysicalPages;
import io.cistern.caching.internal.shard.MappingWindow;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.internal.threads.HeldLock;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Claims a window for one request and puts pages under it. [#close] undoes all that was not [kept][#keep].
///
/// 1. **Plan**, under the page table's lock: the idle pages of aliased blocks come home; each hole gets idle pages of
///    other places, or new pages. A page that is taken leaves its giver's free blocks at once.
/// 2. **Act**, without that lock: make the stream wait for the streams that pages come from; create → map for
///    each page; one setAccess for each run of pages.
/// 3. **Publish**, under the lock again: the pages have their home here.
///
/// Nothing is unmapped, except in a rollback.
final class WindowFill implements AutoCloseable {
    /// Where the pages for holes come from.
    enum Way {
        /// Created or moved, as the [GrowthPolicy] decides.
        USUAL,
        /// Moved, as long as there are idle pages.
        MOVE,
        /// Always created.
        CREATE
    }

    /// How far the request is.
    enum State {
        /// No window is large enough.
        NO_WINDOW,
        /// Another thread took a page of the window meanwhile.
        CHANGED,
        /// [#fill] is next.
        PLANNED,
        /// A block had become free.
        FOUND
    }

    private final PageTable table;
    private final IdlePages idle;
    private final GrowthPolicy policy;
    private final Shard shard;
    private final long byteSize;
    private final Way way;

    /// Mappings that their pages return to; the pages are out of their homes' free blocks.
    private final List<Mapping> returning = new ArrayList<>();

    /// New mappings in holes, by address: of idle pages, out of their homes' free blocks, or of new pages. The first
    /// [#withMemory] have memory, the first [#mapped] are mapped, and the source knows the first [#announced].
    private final ArrayList<Mapping> added = new ArrayList<>(0);

    private int withMemory;
    private int mapped;
    private int announced;

    /// For how many of them the table has room.
    private int inFill;

    /// Those of [#added] that could not be unmapped.
    private final ArrayList<Mapping> stuck = new ArrayList<>(0);

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
    private boolean isSettled;

    /// Makes a fill, before the first page is claimed: from then on, all that it does can be undone.
    WindowFill(PageTable table, IdlePages idle, GrowthPolicy policy, Shard shard, long byteSize, Way way) {
        this.table = table;
        this.idle = idle;
        this.policy = policy;
        this.shard = shard;
        this.byteSize = byteSize;
        this.way = way;
    }

    /// Searches the shard again, and allocates a block if one fits.
    boolean find() {
        address = shard.allocateAfterMiss(byteSize);
        return address != 0;
    }

    /// Plans the pages of a window. The caller holds the page table's lock.
    State plan() {
        window = shard.claimWindow(byteSize, way == Way.CREATE ? null : idle.usable);
        if (window == null) {
            return State.NO_WINDOW;
        }
        return plan(window) ? State.PLANNED : State.CHANGED;
    }

    private boolean plan(MappingWindow claimed) {
        end = claimed.bounds[claimed.count];
        for (int i = 0; i < claimed.count; i++) {
            if (claimed.states[i] == Blocks.ALIASED) {
                Mapping mapping = Objects.requireNonNull(claimed.arena.mappingAt(claimed.bounds[i]));
                if (!idle.has(mapping.page) || !takeIdle(mapping, returning)) {
                    return false;
                }
            }
        }
        for (int i = 0; i < claimed.count; i++) {
            if (claimed.states[i] == Blocks.HOLE) {
                planHole(claimed, claimed.bounds[i], claimed.bounds[i + 1]);
            }
        }
        putNewestFirst();
        seemsTooMuch = createdBytes > policy.leftBytes(table.pages.counters.reservedBytes());
        return true;
    }

    /// Puts the page first that was freed last: its stream may have waited for the others.
    private void putNewestFirst() {
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
            isTaken = home.owner.alias(home, shard);
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
            at = added.getLast().end;
        }
        if (holeEnd == claimed.bounds[claimed.count]) {
            end = at;
        }
    }

    /// Adds a mapping of a page.
    ///
    /// @param next where the search among idle pages goes on
    /// @return where it goes on after this page
    private int planPage(MappingWindow claimed, long at, long missing, long space, int next) {
        long reserved = table.pages.counters.reservedBytes() + createdBytes;
        long usual = Math.min(policy.pageBytes(shard.isSmall(), reserved), space);
        boolean moves = way != Way.CREATE; // in a stable table, each way is that
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
        added.add(new Page(0, size, claimed.arena, at).home);
        createdBytes += size;
        cameBytes += size;
    }

    /// Takes the largest idle page, from number `next` on, that has at most so many bytes.
    ///
    /// @return where the search goes on; [Integer#MAX_VALUE] if there is none
    private int take(MappingWindow claimed, long at, long atMost, int next) {
        List<Page> pages = idle.bySize();
        int ofOthers = foreign.size();
        for (int i = next; i < pages.size(); i++) {
            Page page = pages.get(i);
            boolean fits = page.byteSize <= atMost && idle.has(page);
            if (fits && takeIdle(new Mapping(page, claimed.arena, at), added)) {
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
            stuck.ensureCapacity(added.size());
            try (HeldLock _ = table.hold()) { // under which alone a thread that pins pages reads the arena
                shard.reserve(claimed.arena, end);
                table.beginFill(added);
                inFill = added.size();
            }
            if (seemsTooMuch && added.size() > 1) { // a refusal then comes before many pages are created and given back
                table.pages.release(table.pages.create(createdBytes), createdBytes);
            }
            for (Page page : foreign) {
                order.precede(shard.timeline(), page.home.owner.timeline(), page.home.freedAt);
            }
            map();
            publish(claimed);
        } catch (RuntimeException | Error failure) {
            if (address == 0) {
                unmap(failure);
            }
            throw failure;
        }
    }

    private void map() {
        PhysicalPages pages = table.pages;
        int opened = 0;
        for (int i = 0; i < added.size(); i++) {
            Mapping mapping = added.get(i);
            if (mapping.isHome()) {
                mapping.page.handle = pages.create(mapping.page.byteSize);
            }
            withMemory++;
            pages.map(mapping.address, mapping.page);
            mapped++;
            boolean runEnds = i + 1 == added.size() || added.get(i + 1).address != mapping.end;
            if (runEnds) {
                long from = added.get(opened).address;
                pages.open(from, mapping.end - from);
                opened = i + 1;
            }
        }
        while (announced < added.size()) {
            pages.mapped(added.get(announced));
            announced++;
        }
    }

    private void publish(MappingWindow claimed) {
        try (HeldLock _ = table.hold()) {
            for (int i = 0; i < added.size(); i++) {
                Mapping mapping = added.get(i);
                table.ranges.put(mapping.arena, mapping.address, mapping.page.byteSize);
            }
            address = shard.fillAndAllocate(claimed, added, cameBytes, end, byteSize);
            for (int i = 0; i < returning.size(); i++) {
                table.comesHome(returning.get(i));
            }
            for (int i = 0; i < added.size(); i++) {
                table.comesHome(added.get(i));
            }
            table.endFill(inFill);
            policy.movedBytes += movedBytes;
            if (createdBytes > 0) {
                table.pages.counters.count(CacheEvent.DEVICE_ALLOC);
            }
        }
    }

    private void unmap(Throwable failure) {
        for (int i = 0; i < added.size(); i++) {
            Mapping mapping = added.get(i);
            table.ranges.remove(mapping.arena, mapping.address, mapping.page.byteSize);
            if (i < mapped && !tryUnmap(mapping, i < announced, failure)) {
                stuck.add(mapping);
            } else if (i < withMemory && mapping.isHome()) {
                table.pages.release(mapping.page.handle, mapping.page.byteSize);
            }
        }
    }

    private boolean tryUnmap(Mapping mapping, boolean isAnnounced, Throwable failure) {
        try {
            if (isAnnounced) {
                return table.pages.tryUnmap(mapping);
            }
            table.pages.unmap(mapping.address, mapping.page.byteSize);
            return true;
        } catch (RuntimeException | Error second) {
            failure.addSuppressed(second);
            return false;
        }
    }

    /// Hands the block to the caller, which owns it from now on; returns its address.
    long keep(CrossStreamOrder order) {
        boolean isMiss = !added.isEmpty() || !foreign.isEmpty();
        table.pages.counters.count(isMiss ? CacheEvent.PAGES_MISS : CacheEvent.PAGES_HIT);
        if (isMiss) {
            table.aliases.unmapOld(order);
        }
        isSettled = true;
        return address;
    }

    /// Unless the block was handed out, gives it back, or undoes the plan: all pages are where they were. Makes no
    /// driver call.
    @Override
    public void close() {
        if (isSettled) {
            return;
        }
        isSettled = true;
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
            home.owner.takeBack(home, shard);
        }
        for (int i = 0; i < added.size(); i++) {
            Mapping home = added.get(i).page.home;
            if (home != added.get(i)) {
                home.owner.takeBack(home, shard);
            }
        }
        if (window != null) {
            shard.abandon(window);
        }
        for (int i = 0; i < stuck.size(); i++) {
            shard.spend(stuck.get(i));
            table.stuck(stuck.get(i));
        }
        table.endFill(inFill);
    }
}
