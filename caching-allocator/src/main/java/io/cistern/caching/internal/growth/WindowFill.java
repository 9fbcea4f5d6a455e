package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.ReservedList;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.page.PhysicalPages;
import io.cistern.caching.internal.shard.MappingWindow;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.cuda.AccessRights;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Claims a window for one request and puts pages under it.
///
/// 1. **Plan**, under the page table's lock: the idle pages of aliased blocks come home; each hole gets
///    pieces, which are idle pages of other places or new pages. A page that is taken leaves its giver's free
///    blocks at once.
/// 2. **Act**, without that lock: make the stream wait for the streams that pages come from; create → map for
///    each piece; one setAccess for each run of pieces.
/// 3. **Publish**, under the lock again: the pages have their home here, or all changes are undone.
///
/// Nothing is unmapped, except in a rollback.
final class WindowFill {
    /// Where the pages for holes come from.
    enum Way {
        /// Created or moved, as the [GrowthPolicy] decides.
        USUAL,
        /// Moved, as long as there are idle pages.
        MOVE,
        /// Always created.
        CREATE
    }

    /// New memory or an idle page for an address of a hole, and how many steps it has gone through.
    private static final class Piece {
        final long address;
        long byteSize;

        /// The idle page, taken out of its home's free blocks; null for new memory.
        @Nullable
        Page taken;

        boolean isCreated;
        boolean isMapped;
        boolean isAnnounced;

        Piece(long address) {
            this.address = address;
        }
    }

    private final PageTable table;
    private final IdlePages idle;
    private final GrowthPolicy growthPolicy;
    private final Shard shard;
    private final long byteSize;

    /// Pages that return to a mapping that they left. The first [#returned] of them are out of their
    /// homes' free blocks.
    private final List<Mapping> returning = new ArrayList<>();
    private int returned;

    /// Taken pages of other streams.
    private final List<Page> foreign = new ArrayList<>();

    private final List<Piece> pieces = new ArrayList<>();

    /// The mappings of the pieces, in their order.
    private final ReservedList<Mapping> mappings = new ReservedList<>();

    private final ReservedList<Mapping> stuck = new ReservedList<>();
    private @Nullable MappingWindow window;
    private Way way = Way.USUAL;
    private long needEnd;
    private long planned;

    /// Whether the device seems to have less memory left than the planned pages need.
    private boolean seemsTooMuch;

    /// Whether a page is to be created above the peak of live bytes, because none was idle.
    private boolean lacksIdle;

    /// Bytes of pages that are new or have their home in other shards.
    private long cameBytes;

    /// Where the search among idle pages goes on.
    private int next;

    /// Where the window's pages end.
    private long end;

    private long address;

    /// Makes a fill, before the first page is claimed: from then on, all that it does can be undone.
    WindowFill(PageTable table, IdlePages idle, GrowthPolicy growthPolicy, Shard shard, long byteSize) {
        this.table = table;
        this.idle = idle;
        this.growthPolicy = growthPolicy;
        this.shard = shard;
        this.byteSize = byteSize;
    }

    /// Step 0, under the page table's lock: allocates a block that needs no pages, or claims a window.
    ///
    /// @return false if no window is large enough
    boolean claim(Way chosen) {
        way = chosen;
        address = shard.allocateAfterMiss(byteSize);
        if (address == 0) {
            window = shard.claimWindow(byteSize, way == Way.CREATE ? null : idle);
        }
        return address != 0 || window != null;
    }

    /// The address of the block for the request; 0 before there is one.
    long address() {
        return address;
    }

    /// Whether a page is to be created above the peak of live bytes, because no idle page fits.
    boolean lacksIdle() {
        return lacksIdle;
    }

    /// Step 1: plans the pages.
    ///
    /// @return false if a page is not idle any more; the caller then [gives up][#undo] the window
    boolean plan() {
        MappingWindow claimed = window();
        needEnd = claimed.address() + byteSize;
        end = claimed.end();
        for (int i = 0; i < claimed.count(); i++) {
            if (claimed.state(i) == Blocks.LENT && !comeHome(claimed, claimed.start(i))) {
                return false;
            }
        }
        for (int i = 0; i < claimed.count(); i++) {
            if (claimed.state(i) == Blocks.HOLE) {
                planHole(claimed, claimed.start(i), claimed.end(i));
            }
        }
        seemsTooMuch = planned > growthPolicy.leftBytes(table.pages.reserved().bytes());
        return true;
    }

    private MappingWindow window() {
        return Objects.requireNonNull(window);
    }

    private void noteForeign(Page page) {
        if (page.home.owner.timeline() != shard.timeline()) {
            foreign.add(page);
        }
    }

    private boolean comeHome(MappingWindow claimed, long at) {
        Mapping mapping = Objects.requireNonNull(claimed.arena().mappingAt(at));
        Mapping home = mapping.page.home;
        returning.add(mapping);
        if (!idle.has(mapping.page) || !home.owner.lend(home, shard)) {
            return false;
        }
        returned++;
        idle.taken(mapping.page);
        noteForeign(mapping.page);
        noteComing(home);
        return true;
    }

    @SuppressWarnings("ReferenceEquality") // there is one object for each shard
    private void noteComing(Mapping home) {
        cameBytes += home.owner == shard ? 0 : home.page.byteSize;
    }

    private void planHole(MappingWindow claimed, long from, long holeEnd) {
        long wanted = Math.min(holeEnd, claimed.arena().slotStart(needEnd));
        next = 0;
        long at = from;
        while (at < wanted) {
            Piece piece = new Piece(at);
            pieces.add(piece);
            plan(piece, wanted - at, holeEnd - at);
            at += piece.byteSize;
        }
        if (holeEnd == claimed.end()) {
            end = at;
        }
    }

    private void plan(Piece piece, long missing, long space) {
        long page = Math.min(
                growthPolicy.pageBytes(shard.isSmall(), table.pages.reserved().bytes() + planned), space);
        boolean moves = way != Way.CREATE && !table.stable;
        if (way == Way.USUAL
                && moves
                && growthPolicy.isNeeded(table.pages.reserved().bytes() + planned)) {
            create(piece, page);
            return;
        }
        long atMost = Math.min(Sizes.roundUp(missing, growthPolicy.unit()), space);
        if (!moves || !takeIdle(piece, atMost)) {
            lacksIdle |= moves;
            create(piece, Math.min(page, atMost));
        }
    }

    private void create(Piece piece, long size) {
        planned += size;
        cameBytes += size;
        piece.byteSize = size;
    }

    /// Takes the largest idle page that is not larger than `missing`.
    private boolean takeIdle(Piece piece, long missing) {
        List<Page> pages = idle.bySize();
        for (; next < pages.size(); next++) {
            Page page = pages.get(next);
            if (page.byteSize <= missing && take(piece, page)) {
                return true;
            }
        }
        return false;
    }

    private boolean take(Piece piece, Page page) {
        if (!idle.has(page)) {
            return false;
        }
        idle.taken(page);
        if (!page.home.owner.lend(page.home, shard)) {
            return false;
        }
        piece.taken = page;
        piece.byteSize = page.byteSize;
        noteForeign(page);
        noteComing(page.home);
        return true;
    }

    /// Whether all pages are present and of this stream: the remaining steps then make no driver call.
    boolean isThere() {
        return pieces.isEmpty() && foreign.isEmpty();
    }

    /// Whether the stream would have to wait for running work of other streams.
    boolean wouldWait(CrossStreamOrder order) {
        try {
            Page newest = newestForeign();
            if (newest == null) {
                return false;
            }
            boolean waits = wouldWait(order, newest);
            for (int i = 0; i < foreign.size() && !waits; i++) {
                waits = wouldWait(order, foreign.get(i));
            }
            return waits;
        } catch (RuntimeException | Error failure) {
            undo();
            throw failure;
        }
    }

    private boolean wouldWait(CrossStreamOrder order, Page page) {
        return order.wouldWait(shard.timeline(), page.home.owner.timeline(), page.home.freedAt);
    }

    /// Returns the page that was freed last: its stream may have waited for the others.
    private @Nullable Page newestForeign() {
        Page newest = null;
        for (Page page : foreign) {
            newest = newest == null || page.home.freedAt > newest.home.freedAt ? page : newest;
        }
        return newest;
    }

    /// Steps 2 and 3. After a failure, all changes are undone.
    void fill(CrossStreamOrder order) {
        try {
            makeMappings();
            askForAll();
            precede(order);
            map();
            publish();
        } catch (RuntimeException | Error failure) {
            unmap(failure);
            undo();
            throw failure;
        }
    }

    private void makeMappings() {
        PageArena arena = window().arena();
        shard.reserve(arena, end); // also for mappings that can't be unmapped
        mappings.reserve(pieces.size());
        stuck.reserve(pieces.size());
        for (int i = 0; i < pieces.size(); i++) {
            Piece piece = pieces.get(i);
            mappings.add(
                    piece.taken == null
                            ? new Page(0, piece.byteSize, arena, piece.address).home
                            : new Mapping(piece.taken, arena, piece.address));
        }
    }

    /// Asks for all planned memory at once if there seems to be less: a refusal then comes before many pages are
    /// created, mapped and given back.
    private void askForAll() {
        if (seemsTooMuch && pieces.size() > 1) {
            table.pages.release(table.pages.create(planned), planned);
        }
    }

    private void precede(CrossStreamOrder order) {
        Page newest = newestForeign();
        if (newest != null) {
            precede(order, newest);
            foreign.forEach(page -> precede(order, page));
        }
    }

    private void precede(CrossStreamOrder order, Page page) {
        order.precede(shard.timeline(), page.home.owner.timeline(), page.home.freedAt);
    }

    private void map() {
        PhysicalPages pages = table.pages;
        int opened = 0;
        for (int i = 0; i < pieces.size(); i++) {
            Piece piece = pieces.get(i);
            map(piece, mappings.get(i));
            boolean runEnds = i + 1 == pieces.size() || pieces.get(i + 1).address != piece.address + piece.byteSize;
            if (runEnds) {
                long from = pieces.get(opened).address;
                long run = piece.address + piece.byteSize - from;
                pages.memory.setAccess(pages.device, from, run, pages.accessors, AccessRights.READ_WRITE);
                opened = i + 1;
            }
        }
        for (int i = 0; i < pieces.size(); i++) {
            pages.mapped(mappings.get(i));
            pieces.get(i).isAnnounced = true;
        }
    }

    private void map(Piece piece, Mapping mapping) {
        PhysicalPages pages = table.pages;
        if (piece.taken == null) {
            mapping.page.handle = pages.create(piece.byteSize);
            piece.isCreated = true;
        }
        pages.memory.map(pages.device, piece.address, piece.byteSize, mapping.page.handle);
        piece.isMapped = true;
    }

    private void unmap(Throwable failure) {
        for (int i = 0; i < mappings.size(); i++) {
            Piece piece = pieces.get(i);
            Mapping mapping = mappings.get(i);
            table.ranges.remove(mapping.arena, mapping.address, piece.byteSize);
            if (piece.isMapped && !tryUnmap(piece, mapping, failure)) {
                stuck.add(mapping);
            } else if (piece.isCreated) {
                table.pages.release(mapping.page.handle, piece.byteSize);
            }
        }
    }

    private boolean tryUnmap(Piece piece, Mapping mapping, Throwable failure) {
        try {
            if (piece.isAnnounced) {
                return table.pages.tryUnmap(mapping);
            }
            table.pages.memory.unmap(table.pages.device, mapping.address, mapping.page.byteSize);
            return true;
        } catch (RuntimeException second) {
            failure.addSuppressed(second);
            return false;
        }
    }

    /// Undoes everything: all pages are where they were. Called with or without the page table's lock.
    void undo() {
        table.lock();
        try {
            for (int i = 0; i < returned; i++) {
                takeBack(returning.get(i).page.home);
            }
            for (int i = 0; i < pieces.size(); i++) {
                Page taken = pieces.get(i).taken;
                if (taken != null) {
                    takeBack(taken.home);
                }
            }
            if (window != null) {
                shard.abandon(window);
            }
            for (int i = 0; i < stuck.size(); i++) {
                shard.spend(stuck.get(i));
                table.stuck(stuck.get(i));
            }
        } finally {
            table.unlock();
        }
    }

    private void takeBack(Mapping home) {
        home.owner.takeBack(home, shard);
    }

    private void publish() {
        table.lock();
        try {
            for (int i = 0; i < mappings.size(); i++) {
                table.reserveFor(mappings.get(i), mappings.size());
            }
            for (int i = 0; i < mappings.size(); i++) {
                Mapping mapping = mappings.get(i);
                table.ranges.put(mapping.arena, mapping.address, mapping.page.byteSize);
            }
            address = shard.fillAndAllocate(window(), mappings, cameBytes, end, byteSize);
            for (int i = 0; i < returning.size(); i++) {
                table.comesHome(returning.get(i));
            }
            for (int i = 0; i < mappings.size(); i++) {
                table.comesHome(mappings.get(i));
            }
            if (planned > 0) {
                table.pages.reserved().counters.count(CacheEvent.DEVICE_ALLOC);
            }
        } finally {
            table.unlock();
        }
    }
}
