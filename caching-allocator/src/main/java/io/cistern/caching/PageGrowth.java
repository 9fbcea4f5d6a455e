package io.cistern.caching;

import io.cistern.DeviceOutOfMemoryException;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import java.util.List;
import java.util.Optional;

/// Growth by pages: into the window of the shard's arenas where the fewest bytes are missing, or else into a new
/// arena. What is missing are idle pages of other places, or [new ones][Purchases].
///
/// An arena's reservation costs no memory. One for large blocks has room for all of the device's memory and an
/// eighth more, because blocks in use may leave gaps that no page lies under; one for small blocks has an
/// eighth. But a process has 128 TiB of addresses, which 800 such arenas of an H200 would take: so the more there are,
/// the smaller are new ones, and where the driver has no addresses left, they are smaller still. A shard may have
/// several.
final class PageGrowth implements Growth {
    /// Captures that may begin between two looks: more come from something else.
    private static final int MOST_REFUSED = 16;

    /// Looks that may be in vain because other threads took pages that they had found. Some thread gets on with each;
    /// after so many, new pages are bought, which nobody else can take.
    private static final int MAX_CHANGED = 64;

    /// So many arenas have all the room that they may need. Of an H200 they take 10 of 128 TiB, and ten thousand 60.
    private static final int ROOMY_ARENAS = 64;

    private final PageTable table;
    private final MissClock clock;
    private final CrossStreamOrder order;
    private final Purchases purchases;
    private final IdlePages idle;
    private final long deviceBytes;

    PageGrowth(PageTable table, MissClock clock, CrossStreamOrder order, Purchases purchases, long deviceBytes) {
        this.table = table;
        this.clock = clock;
        this.order = order;
        this.purchases = purchases;
        this.deviceBytes = deviceBytes;
        this.idle = new IdlePages(order);
    }

    @Override
    public boolean movesPages() {
        return !table.stable;
    }

    @Override
    public long growAndAllocate(StreamShard shard, long byteSize, boolean idleFirst) {
        WindowFill.Way way = way(idleFirst);
        if (byteSize > deviceBytes && table.pages.onDevice) {
            throw new DeviceOutOfMemoryException(
                    byteSize, table.pages.device, "the device has " + deviceBytes + " bytes");
        }
        int changed = 0;
        for (int refused = 0; ; ) { // both counts are bounded, and after a new arena there is a window
            Step step = findOrPlan(shard, byteSize, changed > MAX_CHANGED ? WindowFill.Way.BUY : way);
            if (step instanceof Block block) {
                table.pages.reserved().counters.count(CacheEvent.PAGES_HIT);
                return block.address;
            }
            if (step instanceof Plan plan) {
                try {
                    long address = plan.fill.fill(order, byteSize);
                    table.pages.reserved().counters.count(CacheEvent.PAGES_MISS);
                    table.lent.unmapOld(order);
                    return address;
                } catch (CudaException failure) {
                    // A giver's capture began after the look; the next look sees it.
                    if (failure.result() != CudaResult.STREAM_CAPTURE_UNSUPPORTED || ++refused > MOST_REFUSED) {
                        throw failure;
                    }
                    clock.advance();
                }
            } else if (step instanceof NoWindow) {
                table.enter(shard.addHole(newArena(shard, byteSize)));
            } else {
                changed++;
                clock.advance();
            }
        }
    }

    private WindowFill.Way way(boolean idleFirst) {
        if (table.stable) {
            return WindowFill.Way.BUY;
        }
        return idleFirst ? WindowFill.Way.MOVE : WindowFill.Way.USUAL;
    }

    private sealed interface Step {}

    private record Block(long address) implements Step {}

    private record Plan(WindowFill fill) implements Step {}

    private record NoWindow() implements Step {}

    /// Another thread took a page of the window meanwhile.
    private record Changed() implements Step {}

    private Step findOrPlan(StreamShard shard, long byteSize, WindowFill.Way way) {
        order.poll();
        Step step;
        List<StreamTimeline> tooNew;
        table.lock();
        try {
            step = look(shard, byteSize, way);
            tooNew = idle.tooNew();
        } finally {
            table.unlock();
        }
        mark(tooNew, step);
        return step;
    }

    private void mark(List<StreamTimeline> tooNew, Step planned) {
        if (tooNew.isEmpty()) {
            return;
        }
        try {
            order.mark(tooNew);
        } catch (RuntimeException | Error failure) {
            if (planned instanceof Plan plan) {
                plan.fill.undo();
            }
            throw failure;
        }
    }

    private Step look(StreamShard shard, long byteSize, WindowFill.Way way) {
        clock.advance();
        idle.look(table.shards(), shard);
        purchases.needed(idle.liveBytes() + byteSize);
        WindowFill.Way chosen = way == WindowFill.Way.USUAL ? usualWay(shard, byteSize) : way;
        BlockHeap.Room found = shard.findOrClaimWindow(byteSize, chosen == WindowFill.Way.BUY ? null : idle);
        if (found instanceof BlockHeap.Found block) {
            return new Block(block.address());
        }
        return found instanceof Window window ? plan(shard, window, byteSize, chosen) : new NoWindow();
    }

    @Override
    public boolean hasLaneShareLeft() {
        table.lock();
        try {
            return smallReservedBytes() + Sizes.SLOT <= purchases.laneShareBytes();
        } finally {
            table.unlock();
        }
    }

    private long smallReservedBytes() {
        return table.shards().stream()
                .filter(shard -> shard.small)
                .mapToLong(StreamShard::reservedBytes)
                .sum();
    }

    private WindowFill.Way usualWay(StreamShard shard, long byteSize) {
        long reserved = table.pages.reserved().bytes();
        boolean isLittle = !shard.timeline.oneOfMany && purchases.isLittle(reserved, byteSize);
        return isLittle ? WindowFill.Way.BUY : mindSmallShare(shard);
    }

    private WindowFill.Way mindSmallShare(StreamShard shard) {
        long small = idle.smallReservedBytes();
        if (shard.small && small + Sizes.SLOT <= purchases.smallShareBytes()) {
            return WindowFill.Way.BUY;
        }
        if (!shard.small && small <= purchases.smallShareBytes()) {
            idle.spareSmall();
        }
        return WindowFill.Way.USUAL;
    }

    private Step plan(StreamShard shard, Window window, long byteSize, WindowFill.Way way) {
        WindowFill fill = new WindowFill(table, idle, purchases, shard, window, byteSize, way);
        if (fill.plan()) {
            return fill.isThere() ? new Block(fill.fill(order, byteSize)) : new Plan(fill);
        }
        fill.undo();
        return new Changed();
    }

    @Override
    public long otherBytes() {
        return table.pages.refusedBytes() + table.checkInvariants();
    }

    @Override
    public long refusedBytes() {
        return table.pages.refusedBytes() + table.stuckBytes();
    }

    @Override
    public void releaseRefused() {
        table.releaseStuck();
        table.pages.releaseRefused();
    }

    @Override
    public boolean unmapLent(StreamShard shard) {
        return table.lent.unmap(shard);
    }

    @Override
    public boolean passOn(StreamShard shard, StreamTimeline heir, boolean anew) {
        table.lock();
        try {
            return shard.passTo(heir, anew);
        } finally {
            table.unlock();
        }
    }

    @Override
    public void setPinned(long address, long byteSize, Page.Pin reason, boolean pinned) {
        table.setPinned(address, byteSize, reason, pinned);
    }

    @Override
    public void unpinAll(Page.Pin reason) {
        table.unpinAll(reason);
    }

    @Override
    public Optional<PageTable> pages() {
        return Optional.of(table);
    }

    /// Without restraint: the pages of what is left over can go back to the driver.
    @Override
    public Cutting cutting() {
        return Cutting.ANY;
    }

    private PageArena newArena(StreamShard shard, long byteSize) {
        long least = Sizes.roundUp(byteSize, table.pages.unit());
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
        return Math.max(least, Sizes.roundUp(refused / 8, table.pages.unit()));
    }

    private long reservation(StreamShard shard, long byteSize) {
        long usual = shard.small ? deviceBytes / 8 : deviceBytes / 8 * 9;
        long shared = usual / (1 + PageArena.openCount() / ROOMY_ARENAS);
        return Sizes.roundUp(Math.max(shared, byteSize), table.pages.unit());
    }
}
