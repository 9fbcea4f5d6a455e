package io.cistern.caching;

import io.cistern.cuda.AccessRights;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Puts pages under a claimed window.
///
/// 1. **Plan**, under the page table's lock: the idle pages of its lent blocks come home; each hole gets pieces,
/// which are idle pages of other places or sizes to be bought. Whatever is taken is out of its giver's free blocks
/// from then on.
/// 2. **Act**, without that lock: order after the streams that pages come from; then create → map for each piece,
/// and one setAccess for each hole.
/// 3. **Settle**, under the lock again: the pages are at home here, or everything is as it was.
///
/// Nothing is unmapped, except to roll back.
final class WindowFill {
    /// Where pages come from.
    enum Way {
        /// Bought or moved, as [Purchases] say.
        USUAL,
        /// Moved, as long as there are idle ones.
        MOVE,
        /// Bought.
        BUY
    }

    /// New memory, or an idle page, at an address of a hole.
    private record Piece(
            long address, long byteSize, @Nullable Page taken) {}

    /// An idle page that is many times larger than what is missing would keep its rest from everybody else.
    private static final int MOST_OVERSHOOT = 4;

    private final PageTable table;
    private final IdlePages idle;
    private final Purchases purchases;
    private final StreamShard shard;
    private final Window window;
    private final Way way;
    private final long needEnd;

    /// Pages that come back to where they are still mapped.
    private final List<Mapping> returning;

    /// Pages of other streams.
    private final List<Page> foreign = new ArrayList<>();

    private final List<Piece> pieces = new ArrayList<>();
    /// Mappings of the pieces made so far, in their order.
    private final List<Mapping> made = new ArrayList<>();

    private final List<Mapping> stuck = new ArrayList<>();
    private long planned;
    /// Of pages that are new, or at home in other shards.
    private long cameBytes;
    /// Where the search among the idle pages goes on.
    private int next;
    /// Where pages end.
    private long end;

    WindowFill(
            PageTable table,
            IdlePages idle,
            Purchases purchases,
            StreamShard shard,
            Window window,
            long byteSize,
            Way way) {
        this.table = table;
        this.idle = idle;
        this.purchases = purchases;
        this.shard = shard;
        this.window = window;
        this.way = way;
        this.returning = new ArrayList<>(window.count());
        this.needEnd = window.address() + byteSize;
        this.end = window.end();
    }

    /// Step 1.
    ///
    /// @return false if a page is not idle any more; then the window must be [given up][#undo]
    boolean plan() {
        for (int i = 0; i < window.count(); i++) {
            if (window.state(i) == Blocks.LENT && !comeHome(window.start(i))) {
                return false;
            }
        }
        for (int i = 0; i < window.count(); i++) {
            if (window.state(i) == Blocks.HOLE) {
                planHole(window.start(i), window.end(i));
            }
        }
        return true;
    }

    /// Returns whether a page comes from another stream.
    private boolean noteForeign(Page page) {
        boolean isForeign = page.home.shard.timeline != shard.timeline;
        if (isForeign) {
            foreign.add(page);
        }
        return isForeign;
    }

    private boolean comeHome(long address) {
        Mapping mapping = Objects.requireNonNull(window.arena().mappingAt(address));
        Mapping home = mapping.page.home;
        if (!idle.has(mapping.page) || !home.shard.lend(home, shard)) {
            return false;
        }
        idle.taken(mapping.page);
        returning.add(mapping);
        noteForeign(mapping.page);
        noteComing(home);
        return true;
    }

    private void noteComing(Mapping home) {
        cameBytes += home.shard == shard ? 0 : home.page.byteSize;
    }

    private void planHole(long from, long holeEnd) {
        long wanted = Math.min(holeEnd, window.arena().slotStart(needEnd));
        next = 0;
        long at = from;
        while (at < wanted) {
            Piece piece = piece(at, wanted - at, holeEnd - at);
            pieces.add(piece);
            at += piece.byteSize;
        }
        if (holeEnd == window.end()) {
            end = at;
        }
    }

    private Piece piece(long at, long missing, long space) {
        PhysicalPages pages = table.pages;
        long reserved = pages.reserved().bytes() + planned;
        long whole = Math.min(pages.pageBytes(purchases, shard), space);
        long cut = pages.cut(whole, missing);
        if (way != Way.MOVE && !table.stable && purchases.isNeeded(reserved)) {
            return buy(at, whole);
        }
        if (way == Way.BUY || (way == Way.USUAL && mayBuy(reserved, cut))) {
            return buy(at, cut);
        }
        Page page = takeIdle(missing, space);
        if (page == null) {
            return buy(at, cut);
        }
        purchases.moved(page.byteSize, noteForeign(page));
        noteComing(page.home);
        return new Piece(at, page.byteSize, page);
    }

    private boolean mayBuy(long reserved, long size) {
        return (shard.small && purchases.fitsSmallSlack(reserved, size))
                || (!shard.timeline.oneOfMany && purchases.isEarned(reserved, size));
    }

    private Piece buy(long at, long size) {
        planned += size;
        cameBytes += size;
        purchases.bought(size);
        return new Piece(at, size, null);
    }

    /// The largest idle page that does not hold more than is missing, or else the smallest that has room.
    private @Nullable Page takeIdle(long missing, long space) {
        List<Page> pages = idle.bySize();
        for (; next < pages.size(); next++) {
            Page page = pages.get(next);
            if (page.byteSize <= missing && take(page)) {
                return page;
            }
        }
        long most = Math.min(space, missing * MOST_OVERSHOOT);
        for (int i = pages.size() - 1; i >= 0 && pages.get(i).byteSize <= most; i--) {
            Page page = pages.get(i);
            if (page.byteSize > missing && take(page)) {
                return page;
            }
        }
        return null;
    }

    private boolean take(Page page) {
        if (!idle.has(page)) {
            return false;
        }
        idle.taken(page);
        return page.home.shard.lend(page.home, shard);
    }

    /// Whether all pages are there and of this stream: then the steps that are left make no driver calls.
    boolean isThere() {
        return pieces.isEmpty() && foreign.isEmpty();
    }

    /// Steps 2 and 3.
    ///
    /// @return the address of a block for the request
    long fill(CrossStreamOrder order, long byteSize) {
        try {
            precede(order);
            map();
        } catch (RuntimeException | Error failure) {
            unmap(failure);
            undo();
            throw failure;
        }
        return publish(byteSize);
    }

    /// Begins with the page that was freed last: its stream may have waited for the others.
    private void precede(CrossStreamOrder order) {
        Page newest = null;
        for (Page page : foreign) {
            newest = newest == null || page.home.freedAt > newest.home.freedAt ? page : newest;
        }
        if (newest != null) {
            precede(order, newest);
            foreign.forEach(page -> precede(order, page));
        }
    }

    private void precede(CrossStreamOrder order, Page page) {
        order.precede(shard.timeline, page.home.shard.timeline, page.home.freedAt);
    }

    private void map() {
        PhysicalPages pages = table.pages;
        int opened = 0;
        for (int i = 0; i < pieces.size(); i++) {
            Piece piece = pieces.get(i);
            made.add(piece.taken == null ? mapNew(piece) : mapTaken(piece, piece.taken));
            boolean runEnds = i + 1 == pieces.size() || pieces.get(i + 1).address != piece.address + piece.byteSize;
            if (runEnds) {
                long from = pieces.get(opened).address;
                long byteSize = piece.address + piece.byteSize - from;
                pages.memory.setAccess(pages.device, from, byteSize, pages.accessors, AccessRights.READ_WRITE);
                opened = i + 1;
            }
        }
    }

    private Mapping mapNew(Piece piece) {
        PhysicalPages pages = table.pages;
        long handle = pages.create(piece.byteSize);
        try {
            pages.memory.map(pages.device, piece.address, piece.byteSize, handle);
        } catch (RuntimeException | Error failure) {
            pages.release(handle, piece.byteSize);
            throw failure;
        }
        return new Page(handle, piece.byteSize, window.arena(), piece.address).home;
    }

    private Mapping mapTaken(Piece piece, Page page) {
        table.pages.memory.map(table.pages.device, piece.address, piece.byteSize, page.handle);
        return new Mapping(page, window.arena(), piece.address);
    }

    private void unmap(Throwable failure) {
        for (Mapping mapping : made) {
            try {
                table.pages.memory.unmap(table.pages.device, mapping.address, mapping.page.byteSize);
            } catch (RuntimeException second) {
                failure.addSuppressed(second);
                stuck.add(mapping);
                continue;
            }
            if (mapping.isHome()) {
                table.pages.release(mapping.page.handle, mapping.page.byteSize);
            }
        }
    }

    /// Gives the window up: all pages are where they were. Without the page table's lock, or with it.
    void undo() {
        table.lock();
        try {
            returning.forEach(mapping -> takeBack(mapping.page.home));
            for (Piece piece : pieces) {
                if (piece.taken != null) {
                    takeBack(piece.taken.home);
                }
            }
            shard.abandon(window, stuck);
            stuck.forEach(table::stuck);
        } finally {
            table.unlock();
        }
    }

    private void takeBack(Mapping home) {
        home.shard.takeBack(home, shard);
    }

    private long publish(long byteSize) {
        for (Mapping mapping : made) {
            table.regions.put(mapping.arena, mapping.address, mapping.page.byteSize);
            table.pages.mapped(mapping);
        }
        table.lock();
        try {
            returning.forEach(table::comesHome);
            made.forEach(table::comesHome);
            if (planned > 0) {
                table.pages.reserved().counters.count(CacheEvent.DEVICE_ALLOC);
            }
            return shard.fillAndAllocate(window, made, cameBytes, end, byteSize);
        } finally {
            table.unlock();
        }
    }
}
