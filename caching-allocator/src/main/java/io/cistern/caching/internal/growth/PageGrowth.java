package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageOwner;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.shard.Growth;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.LongSupplier;

/// Grows by pages: into the window in the smallest free run of the shard's arenas that has one, or else into a
/// new arena. Idle pages of other places, or [new ones][GrowthPolicy], fill the missing bytes.
///
/// An arena's reservation costs no memory. One for large blocks has room for the device's memory and an eighth
/// more, because blocks in use may leave free runs that have no pages; one for small blocks has an eighth of
/// the device's memory. On a small device both have more: where addresses are short, a new block often gets some
/// without pages, and pages move there each time. But a process has only 128 TiB of addresses, which many such
/// arenas would use up.
/// So the more arenas there are, the smaller is a new one; if the driver has no addresses left, it is
/// smaller still. A shard may have several.
public final class PageGrowth extends Growth {
    /// Captures that may begin between two surveys; more refusals have another reason.
    private static final int MAX_REFUSED = 16;

    /// Surveys that may fail because other threads took the pages found. Each time some thread makes progress;
    /// after this many, the growth creates new pages, which no other thread can take.
    private static final int MAX_CHANGED = 64;

    /// This many arenas get all the room that they may need.
    private static final int ROOMY_ARENAS = 64;

    /// An arena of a device with less memory than this is as large as if it had so much.
    private static final long LEAST_ROOM_BYTES = 128L << 30;

    private final PageTable table;
    private final MissClock clock;
    private final CrossStreamOrder order;
    private final Fences fences;
    private final GrowthPolicy growthPolicy;
    private final IdlePages idle;
    private final long deviceBytes;
    private final LongSupplier freeBytes;

    /// @param capBytes the most that may be reserved
    /// @param freeBytes returns the bytes that the device has free
    public PageGrowth(
            PageTable table,
            MissClock clock,
            CrossStreamOrder order,
            Fences fences,
            PagePolicy policy,
            long deviceBytes,
            long capBytes,
            LongSupplier freeBytes) {
        super(fences);
        this.table = table;
        this.clock = clock;
        this.order = order;
        this.fences = fences;
        this.growthPolicy = new GrowthPolicy(policy, table.pages.slotBytes, deviceBytes, capBytes);
        this.deviceBytes = deviceBytes;
        this.freeBytes = freeBytes;
        this.idle = new IdlePages(order);
    }

    @Override
    public boolean movesPages() {
        return !table.stable;
    }

    @Override
    protected long growAndAllocate(Shard shard, long byteSize, boolean idleFirst) {
        WindowFill.Way way = way(idleFirst);
        if (byteSize > deviceBytes && table.pages.onDevice) {
            throw new DeviceOutOfMemoryException(
                    byteSize, table.pages.device, "the device has " + deviceBytes + " bytes");
        }
        look();
        int changed = 0;
        boolean hasSettled = false;
        boolean waits = true;
        for (int refused = 0; ; ) { // both counts are bounded, and after a new arena there is a window
            WindowFill fill = new WindowFill(table, idle, growthPolicy, shard, byteSize);
            switch (findOrPlan(shard, byteSize, waits, changed > MAX_CHANGED ? WindowFill.Way.CREATE : way, fill)) {
                case FOUND -> {
                    table.pages.reserved().counters.count(CacheEvent.PAGES_HIT);
                    return fill.address();
                }
                case PLANNED -> {
                    if (fill.lacksIdle() && !hasSettled) {
                        hasSettled = true;
                        fill.undo();
                        settleAll();
                        continue;
                    }
                    if (waits
                            && way == WindowFill.Way.USUAL
                            && growthPolicy.hasPlenty(table.pages.reserved().bytes())
                            && fill.wouldWait(order)) {
                        waits = false;
                        fill.undo();
                        continue;
                    }
                    try {
                        fill.fill(order);
                        table.pages.reserved().counters.count(CacheEvent.PAGES_MISS);
                        unmapOld(shard, fill.address());
                        return fill.address();
                    } catch (CudaException failure) {
                        // A giver's capture began after the survey; the next survey sees it.
                        if (failure.result() != CudaResult.STREAM_CAPTURE_UNSUPPORTED || ++refused > MAX_REFUSED) {
                            throw failure;
                        }
                        clock.advance();
                    }
                }
                case NO_WINDOW -> addArena(shard, byteSize);
                case CHANGED -> {
                    changed++;
                    clock.advance();
                }
            }
        }
    }

    /// Asks the driver how much of the device is left, once much of the last answer has been used.
    private void look() {
        long reserved = table.pages.reserved().bytes();
        if (!table.pages.onDevice || !growthPolicy.looksDue(reserved)) {
            return;
        }
        long free = freeBytes.getAsLong();
        table.lock();
        try {
            growthPolicy.left(reserved, free);
        } finally {
            table.unlock();
        }
    }

    /// Frees blocks whose fences have passed. That may make pages idle, and moving one costs less
    /// than creating one.
    private void settleAll() {
        List<PageOwner> all;
        table.lock();
        try {
            all = List.copyOf(table.owners());
        } finally {
            table.unlock();
        }
        all.forEach(each -> each.trySettle(fences));
        clock.advance();
    }

    /// If this fails, no caller receives the block, so it is freed.
    private void unmapOld(Shard shard, long address) {
        try {
            table.lent.unmapOld(order);
        } catch (RuntimeException | Error failure) {
            takeBack(shard, address);
            throw failure;
        }
    }

    private void takeBack(Shard shard, long address) {
        shard.giveUp(Objects.requireNonNull(table.ranges.find(address)), address);
    }

    private WindowFill.Way way(boolean idleFirst) {
        if (table.stable) {
            return WindowFill.Way.CREATE;
        }
        return idleFirst ? WindowFill.Way.MOVE : WindowFill.Way.USUAL;
    }

    private enum Look {
        FOUND,
        PLANNED,
        NO_WINDOW,
        /// Another thread took a page of the window meanwhile.
        CHANGED
    }

    private Look findOrPlan(Shard shard, long byteSize, boolean waits, WindowFill.Way way, WindowFill fill) {
        order.poll();
        Look found;
        List<StreamTimeline> tooNew;
        table.lock();
        try {
            clock.advance();
            idle.look(table.owners(), shard, waits);
            tooNew = waits ? idle.tooNew() : List.of();
            found = look(byteSize, way, fill);
        } finally {
            table.unlock();
        }
        mark(tooNew, shard, found, fill);
        return found;
    }

    /// If this fails, the window or block that was found is given up.
    private void mark(List<StreamTimeline> tooNew, Shard shard, Look found, WindowFill fill) {
        if (tooNew.isEmpty()) {
            return;
        }
        try {
            order.mark(tooNew);
        } catch (RuntimeException | Error failure) {
            if (found == Look.PLANNED) {
                fill.undo();
            } else if (found == Look.FOUND) {
                takeBack(shard, fill.address());
            }
            throw failure;
        }
    }

    private Look look(long byteSize, WindowFill.Way way, WindowFill fill) {
        growthPolicy.needed(idle.liveBytes() + byteSize, idle.haveSeveralStreams());
        if (!fill.claim(way)) {
            return Look.NO_WINDOW;
        }
        return fill.address() != 0 ? Look.FOUND : plan(fill);
    }

    private Look plan(WindowFill fill) {
        try {
            if (!fill.plan()) {
                fill.undo();
                return Look.CHANGED;
            }
        } catch (RuntimeException | Error failure) {
            fill.undo();
            throw failure;
        }
        if (!fill.isThere()) {
            return Look.PLANNED;
        }
        fill.fill(order);
        return Look.FOUND;
    }

    @Override
    public void checkInvariants() {
        table.checkInvariants();
    }

    @Override
    public long refusedBytes() {
        return table.pages.refusedBytes() + table.stuck.byteSize();
    }

    @Override
    public void releaseRefused() {
        table.stuck.release();
        table.pages.releaseRefused();
    }

    @Override
    public boolean unmapLent(Shard shard) {
        return table.lent.unmap(shard);
    }

    @Override
    public boolean passOn(Shard shard, StreamTimeline successor, boolean anew) {
        table.lock();
        try {
            return shard.passPagesTo(successor, anew);
        } finally {
            table.unlock();
        }
    }

    @Override
    public Optional<PageTable> pages() {
        return Optional.of(table);
    }

    /// Any block may be split: pages under an unused rest can go back to the driver.
    @Override
    public SplitPolicy splitPolicy() {
        return SplitPolicy.ANY;
    }

    private void addArena(Shard shard, long byteSize) {
        PageArena arena = newArena(shard, byteSize);
        try {
            table.enter(arena);
            shard.addHole(arena);
        } catch (OutOfMemoryError failure) {
            arena.close();
            throw failure;
        }
    }

    private PageArena newArena(Shard shard, long byteSize) {
        long least = Sizes.roundUp(byteSize, growthPolicy.unit());
        for (long wanted = reservation(shard, byteSize); ; wanted = smaller(wanted, least)) {
            try {
                return PageArena.reserve(shard, wanted, table);
            } catch (CudaException refusal) {
                if (refusal.result() != CudaResult.OUT_OF_MEMORY || wanted == least) {
                    throw refusal;
                }
            }
        }
    }

    private long smaller(long refused, long least) {
        return Math.max(least, Sizes.roundUp(refused / 8, growthPolicy.unit()));
    }

    private long reservation(Shard shard, long byteSize) {
        long eighth = Math.max(deviceBytes, LEAST_ROOM_BYTES) / 8;
        long usual = shard.isSmall() ? eighth : eighth * 9;
        long shared = usual / (1 + PageArena.openCount() / ROOMY_ARENAS);
        return Sizes.roundUp(Math.max(shared, byteSize), growthPolicy.unit());
    }
}
