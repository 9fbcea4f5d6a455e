package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.caching.internal.page.PageOwner;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.threads.HeldLock;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;

/// Grows by pages: into the window in the smallest free run of the shard's arenas that has one, or else into a
/// new arena. Idle pages of other places, or [new ones][GrowthPolicy], fill the missing bytes.
///
/// An arena's reservation costs no memory. An arena for large blocks has room for the device's memory and
/// an eighth more, because blocks in use may leave free runs that have no pages; one for small blocks has
/// an eighth of the device's memory. On a small device both have more: where addresses are scarce, a new
/// block often receives some without pages, and pages move there each time. But a process has only 128 TiB
/// of addresses, which many such arenas would use up. So a new arena is smaller the more arenas there are,
/// and smaller still if the driver has no addresses left. A shard may have several.
public final class PageGrowth implements Growth {
    /// Captures that may begin between two surveys; more refusals have another reason.
    private static final int MAX_CAPTURED = 16;

    /// Surveys that may fail because other threads took the pages found. Each time some thread makes progress;
    /// after this many, the growth creates new pages, which no other thread can take.
    private static final int MAX_LOST = 64;

    /// This many arenas receive all the room that they may need.
    private static final int ROOMY_ARENAS = 64;

    /// Arenas of a device with less memory than this are as large as if it had this much.
    private static final long LEAST_ROOM_BYTES = 128L << 30;

    private final PageTable table;
    private final AtomicLong clock;
    private final CrossStreamOrder order;
    private final Fences fences;
    private final GrowthPolicy growthPolicy;
    private final PageSurvey survey;
    private final long deviceBytes;

    /// @param capBytes the most that may be reserved
    public PageGrowth(
            PageTable table,
            AtomicLong clock,
            CrossStreamOrder order,
            Fences fences,
            PagePolicy policy,
            long deviceBytes,
            long capBytes) {
        this.table = table;
        this.clock = clock;
        this.order = order;
        this.fences = fences;
        this.growthPolicy = new GrowthPolicy(policy, table.physical.slotBytes, deviceBytes, capBytes);
        this.deviceBytes = deviceBytes;
        this.survey = new PageSurvey(order);
    }

    @Override
    public long grow(Shard shard, long byteSize, boolean idleFirst) {
        try (HeldLock _ = shard.holdDriver()) {
            shard.settle(fences);
            if (byteSize > deviceBytes && table.physical.onDevice) {
                throw new DeviceOutOfMemoryException(
                        byteSize, table.physical.counters.device, "the device has " + deviceBytes + " bytes");
            }
            askWhatIsLeft();
            WindowFill.Way way = idleFirst ? WindowFill.Way.MOVE : WindowFill.Way.USUAL;
            Attempts attempts = new Attempts(table.stable ? WindowFill.Way.CREATE : way);
            while (true) {
                Outcome outcome;
                try (WindowFill fill = new WindowFill(table, survey, growthPolicy, shard, byteSize, attempts.way)) {
                    outcome = attempt(fill, shard, byteSize, attempts);
                    if (outcome == Outcome.SERVED) {
                        return fill.keep(order);
                    }
                }
                prepareNext(outcome, shard, byteSize, attempts);
            }
        }
    }

    /// How an attempt ended. All but [#SERVED] undo what they did, and are followed by another attempt.
    private enum Outcome {
        SERVED,
        /// No free run has a window. The next attempt finds one in a new arena.
        NO_WINDOW,
        /// Another thread took a page of the window; after [#MAX_LOST] times, only new pages are used.
        PAGE_LOST,
        /// No idle page fits. Before the next attempt, once per request, blocks whose fences have passed are freed.
        NOT_IDLE,
        /// The stream would wait for others though memory is plentiful. The next attempt takes only pages
        /// without a wait.
        WOULD_WAIT,
        /// A capture that began after the survey forbids the wait. Retried up to [#MAX_CAPTURED] times.
        CAPTURED
    }

    /// The state that one request's attempts share.
    private static final class Attempts {
        private WindowFill.Way way;
        private int lost;
        private int captured;
        private boolean hasSettled;

        /// Whether the stream may be made to wait for others.
        private boolean mayWait = true;

        Attempts(WindowFill.Way way) {
            this.way = way;
        }
    }

    private Outcome attempt(WindowFill fill, Shard shard, long byteSize, Attempts attempts) {
        order.poll();
        try (HeldLock _ = table.hold()) {
            clock.getAndIncrement(); // what is freed from now on is newer than this survey
            survey.begin(table.owners, shard, attempts.mayWait);
            growthPolicy.setPeak(
                    survey.liveBytes + byteSize, survey.liveLarge > 1, table.physical.counters.reservedBytes());
            // Blocks that became free since the first search may serve now. Each attempt looks for them
            // before it claims a window, which takes a search of all free runs.
            if (fill.find()) {
                return Outcome.SERVED;
            }
            if (!fill.claimWindow()) {
                return Outcome.NO_WINDOW;
            }
            if (!fill.planPages()) {
                return Outcome.PAGE_LOST;
            }
        }
        if (fill.lacksIdle && !attempts.hasSettled) {
            return Outcome.NOT_IDLE;
        }
        if (attempts.mayWait
                && attempts.way == WindowFill.Way.USUAL
                && growthPolicy.hasPlenty(table.physical.counters.reservedBytes())
                && fill.wouldWait(order)) {
            return Outcome.WOULD_WAIT;
        }
        try {
            fill.fill(order);
            return Outcome.SERVED;
        } catch (CudaException failure) {
            if (failure.result() != CudaResult.STREAM_CAPTURE_UNSUPPORTED || attempts.captured == MAX_CAPTURED) {
                throw failure;
            }
            return Outcome.CAPTURED;
        }
    }

    private void prepareNext(Outcome outcome, Shard shard, long byteSize, Attempts attempts) {
        switch (outcome) {
            case NO_WINDOW -> addArena(shard, byteSize);
            case PAGE_LOST -> attempts.way = ++attempts.lost > MAX_LOST ? WindowFill.Way.CREATE : attempts.way;
            case NOT_IDLE -> {
                attempts.hasSettled = true;
                settleAll();
            }
            case WOULD_WAIT -> attempts.mayWait = false;
            case CAPTURED -> attempts.captured++;
            case SERVED -> {}
        }
    }

    /// Asks the driver how much of the device is left, once much of the last answer has been used.
    private void askWhatIsLeft() {
        long reserved = table.physical.counters.reservedBytes();
        if (!table.physical.onDevice || reserved < growthPolicy.lookAtBytes) {
            return;
        }
        long free = table.physical.freeBytes();
        try (HeldLock _ = table.hold()) {
            growthPolicy.setRoom(reserved, free);
        }
    }

    /// Frees blocks whose fences have passed. That may make pages idle, and moving one costs less than creating one.
    private void settleAll() {
        List<PageOwner> all;
        try (HeldLock _ = table.hold()) {
            all = List.copyOf(table.owners);
        }
        all.forEach(each -> each.trySettle(fences));
    }

    @Override
    public long refusedBytes() {
        return table.physical.refusedBytes() + table.stuckBytes();
    }

    @Override
    public void releaseRefused() {
        table.releaseStuck();
        table.physical.releaseRefused();
    }

    @Override
    public void abandon() {
        table.abandonArenas();
    }

    @Override
    public Optional<PageTable> pageTable() {
        return Optional.of(table);
    }

    /// Any block may be split: pages under the unused remainder can return to the driver.
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
        long least = Sizes.roundUp(byteSize, growthPolicy.unit);
        for (long wanted = reservation(shard, byteSize);
                ;
                wanted = Math.max(least, Sizes.roundUp(wanted / 8, growthPolicy.unit))) {
            try {
                return PageArena.open(shard, wanted, table);
            } catch (CudaException refusal) {
                if (refusal.result() != CudaResult.OUT_OF_MEMORY || wanted == least) {
                    throw refusal;
                }
            }
        }
    }

    private long reservation(Shard shard, long byteSize) {
        long eighth = Math.max(deviceBytes, LEAST_ROOM_BYTES) / 8;
        long usual = shard.isSmall() ? eighth : eighth * 9;
        long shared = usual / (1 + PageArena.openCount() / ROOMY_ARENAS);
        return Sizes.roundUp(Math.max(shared, byteSize), growthPolicy.unit);
    }
}
