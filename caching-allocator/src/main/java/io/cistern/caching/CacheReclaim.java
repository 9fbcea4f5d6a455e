package io.cistern.caching;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.MemoryRefusal;
import io.cistern.caching.internal.growth.Growth;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.page.ReserveCap;
import io.cistern.caching.internal.page.ReserveLimit;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.shard.ShardSurvey;
import io.cistern.caching.internal.thread.ThreadCaches;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.threads.HeldLock;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.TrimResult.Left;
import io.cistern.spi.TrimResult.Reason;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Finds memory for requests that the driver refused, and gives idle memory back.
///
/// **A request.** First, all free blocks of the stream are searched. Then the [#steps] are taken one by
/// one. After each, the free blocks are searched again, since other threads may free some meanwhile; if
/// there is more memory, the growth is retried.
///
/// The error then says how much is held and how much each step gave. If the framework requests the last two
/// steps later, after its own, they are not taken here. For graphs, and at a limit that demands an error at
/// once, no step moves pages or gives memory back.
///
/// **Giving back.** 1. A shard's blocks in thread caches are freed, since they are idle too. 2. Under the shard's
/// driver lock, blocks whose fences have passed are freed; if the caller waits, all blocks that wait for fences. 3.
/// Idle memory is given back if its stream's work has finished; if the caller waits, after that work.
///
/// **Threads.** Any; one shard's driver lock is held at a time, and none during a wait for a stream's work.
final class CacheReclaim {
    /// How many kinds of wait may [free][#giveBackAfterWaiting] memory.
    private static final int WAYS_TO_WAIT = 3;
    /// Different kinds of call may fail, one per try.
    private static final int MOST_TRIES_TO_CLOSE = 8;

    /// The steps that neither move pages nor give memory back.
    private static final Set<ReclaimStep> KEEP_ALL = EnumSet.of(ReclaimStep.OTHER_THREADS, ReclaimStep.PASSED_FENCES);

    private final DeviceCounters counters;
    private final DeviceShards shards;
    private final ThreadCaches threadCaches;
    private final Growth growth;
    private final Fences fences;
    private final MemoryReclaim.Choice choice;
    private final ReserveLimit limit;

    /// False for the memory of graphs.
    private final boolean givesBack;

    private final LongSupplier nanoTime;

    CacheReclaim(
            DeviceCounters counters,
            DeviceShards shards,
            ThreadCaches threadCaches,
            Growth growth,
            Fences fences,
            MemoryReclaim.Choice choice,
            CachingOptions options,
            LongSupplier nanoTime) {
        this.counters = counters;
        this.shards = shards;
        this.threadCaches = threadCaches;
        this.growth = growth;
        this.fences = fences;
        this.choice = choice;
        this.limit = options.limit();
        this.givesBack = options.givesBack();
        this.nanoTime = nanoTime;
    }

    /// A step that may free memory.
    ///
    /// @param mostTurns the most times that the step is taken, while it frees memory
    /// @param taking takes the step, and returns the bytes that it freed
    private record Step(ReclaimStep step, int mostTurns, LongSupplier taking) {}

    private List<Step> steps(Shard shard, long size) {
        return List.of(
                new Step(ReclaimStep.OTHER_THREADS, 1, () -> threadCaches.empty(shards.of(shard.key))),
                new Step(ReclaimStep.PASSED_FENCES, 1, () -> settleStream(shard.key, false)),
                new Step(ReclaimStep.IDLE_PAGES, 1, () -> 0), // the growth after it takes them
                new Step(ReclaimStep.TRIM, 1, () -> giveBackAtOnce(shard, size)),
                new Step(ReclaimStep.SYNCHRONIZE, WAYS_TO_WAIT, () -> giveBackAfterWaiting(shard, size)));
    }

    /// Allocates after a growth has failed.
    ///
    /// @param asked the bytes that the caller asked for
    /// @param refusal why the growth failed; rethrown if not for lack of memory
    /// @throws DeviceOutOfMemoryException if nothing helps
    long allocate(Shard shard, long size, long asked, RuntimeException refusal) {
        if (!MemoryRefusal.isOutOfMemory(refusal)) {
            throw refusal;
        }
        long address = allocateFromAny(shard, size);
        return address != 0 ? address : allocateAfterSteps(shard, size, asked, refusal);
    }

    /// See [DeviceShards#allocateFromAny].
    private long allocateFromAny(Shard shard, long size) {
        return shards.allocateFromAny(shard.key, size, !givesBack);
    }

    private long allocateAfterSteps(Shard shard, long size, long asked, RuntimeException refusal) {
        Set<ReclaimStep> allowed = allowed(size, asked, refusal);
        boolean idleFirst = allowed.contains(ReclaimStep.IDLE_PAGES);
        List<TriedStep> tried = new ArrayList<>();
        for (Step each : steps(shard, size)) {
            long given = allowed.contains(each.step()) ? 1 : 0;
            for (int turn = 0; turn < each.mostTurns() && given > 0; turn++) {
                long begun = nanoTime.getAsLong();
                long held = counters.reservedBytes();
                given = each.taking().getAsLong();
                long address = allocateFromAny(shard, size);
                boolean isMore = given != 0
                        || each.step() == ReclaimStep.IDLE_PAGES
                        || counters.reservedBytes() < held; // other threads may have given memory back
                if (address == 0 && isMore) {
                    address = tryToGrow(shard, size, idleFirst);
                }
                if (address == 0 && isMore) {
                    address = allocateFromAny(shard, size); // growth frees blocks whose fences have just passed
                }
                if (address != 0) {
                    return address; // returning a block must not need Java heap
                }
                tried.add(new TriedStep(each.step(), given, nanoTime.getAsLong() - begun));
            }
        }
        throw nothingHelped(size, asked, refusal, tried);
    }

    private Set<ReclaimStep> allowed(long size, long asked, RuntimeException refusal) {
        Set<ReclaimStep> allowed = new HashSet<>(choice.steps());
        if (asked > limit.maxBytes() || asked > deviceBytes() || isAboveSource(size, refusal)) {
            allowed.clear();
        }
        if (!givesBack || isRejection(refusal)) {
            allowed.retainAll(KEEP_ALL);
        }
        return allowed;
    }

    /// Grows; returns 0 if there is not enough memory. With `idleFirst`, idle pages are moved first and only the
    /// bytes still missing are created, because a new page of the usual size may be larger than the memory left.
    private long tryToGrow(Shard shard, long size, boolean idleFirst) {
        try {
            return growth.grow(shard, size, idleFirst);
        } catch (DeviceOutOfMemoryException | CudaException failure) {
            if (MemoryRefusal.isOutOfMemory(failure)) {
                return 0;
            }
            throw failure;
        }
    }

    /// Returns whether the source can never serve the request, and this cache's own memory can't either. The cache may
    /// hold more than the source gives now: a limit of the upstream may have been lowered.
    private boolean isAboveSource(long size, RuntimeException refusal) {
        return refusal instanceof DeviceOutOfMemoryException told
                && told.canNeverFit()
                && counters.reservedBytes() < size;
    }

    private long deviceBytes() {
        return growth.pageTable().map(table -> table.physical.mostBytes()).orElse(Long.MAX_VALUE);
    }

    private DeviceOutOfMemoryException nothingHelped(
            long size, long asked, RuntimeException refusal, List<TriedStep> tried) {
        DeviceOutOfMemoryException failure = asked > limit.maxBytes()
                ? DeviceOutOfMemoryException.aboveLimit(
                        asked,
                        counters.device,
                        ByteSizes.exact(limit.maxBytes()) + " is all that max_bytes allows: raise it, or request less")
                : refused(size, asked, refusal, tried);
        if (!givesBack && !isRejection(refusal)) {
            return failure.passedOn(asked, "graphs keep their memory until they are closed; " + failure.detail());
        }
        if (!choice.reclaimsLater()) {
            failed(failure);
        }
        return failure;
    }

    /// Returns an exception with the source's reason first. If a limit is the reason, omits the memory of
    /// this cache.
    private DeviceOutOfMemoryException refused(long size, long asked, RuntimeException refusal, List<TriedStep> tried) {
        long deviceBytes = deviceBytes();
        if (asked > deviceBytes) {
            return DeviceOutOfMemoryException.aboveDevice(asked, counters.device, deviceBytes);
        }
        String reason = refusal instanceof DeviceOutOfMemoryException told ? told.detail() : "";
        String detail = reason.isEmpty() ? detail(tried) : reason + "; " + detail(tried);
        if (!(refusal instanceof DeviceOutOfMemoryException told)
                || (told.canNeverFit() && !isAboveSource(size, told))) {
            return new DeviceOutOfMemoryException(asked, counters.device, detail, refusal, tried);
        }
        return told.passedOn(asked, told.isByLimit() || told.canNeverFit() ? reason : detail, tried);
    }

    private String detail(List<TriedStep> tried) {
        List<Shard> all = shards.all();
        long allocated = all.stream().mapToLong(Shard::liveBytes).sum() - threadCaches.bytesOf(all);
        long largest = all.stream().mapToLong(Shard::largestFreeBytes).max().orElse(0);
        return "caching has " + ByteSizes.exact(counters.reservedBytes()) + " reserved, of which "
                + allocated + " are allocated; its largest free block is " + ByteSizes.exact(largest)
                + tried.stream()
                        .filter(each -> each.byteSize() > 0)
                        .map(each -> "; " + each.step().text() + " gave " + ByteSizes.exact(each.byteSize()))
                        .collect(Collectors.joining());
    }

    private boolean isRejection(RuntimeException failure) {
        return limit.failsAtOnce() && ReserveCap.isReached(failure);
    }

    /// See [MemoryReclaim#failed].
    void failed(DeviceOutOfMemoryException refusal) {
        counters.count(isRejection(refusal) ? CacheEvent.REJECTION : CacheEvent.OUT_OF_MEMORY);
    }

    /// See [MemoryReclaim#reclaim].
    long reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
        if (!givesBack || isRejection(refusal)) {
            return 0;
        }
        long size = shards.rounded(refusal.byteSize());
        Shard shard = shards.shard(Fences.key(stream), size);
        return switch (step) {
            case TRIM -> giveBackAtOnce(shard, size);
            case SYNCHRONIZE -> giveBackAfterWaiting(shard, size);
            default -> throw new IllegalArgumentException("step " + step + " has nothing to give back");
        };
    }

    /// Gives back memory whose release the driver refused before, and idle memory of other streams that no
    /// work may still use, until it is enough for a request.
    private long giveBackAtOnce(Shard shard, long size) {
        counters.count(CacheEvent.RETRY);
        return releaseRefused() + giveBackOthers(shard, size, false).mostBytes();
    }

    /// Frees blocks of this stream that wait for other streams. If that frees nothing, waits for other streams and
    /// gives back their idle memory, until it is enough for a request. If that returns nothing, gives back all idle
    /// memory, including this stream's own, which is fragmented. Skips streams in a capture.
    ///
    /// @return the bytes given back to the driver or freed
    private long giveBackAfterWaiting(Shard shard, long size) {
        long settled = settleStream(shard.key, true);
        if (settled != 0) {
            return settled;
        }
        Given given = giveBackOthers(shard, size, true);
        if (given.returnedBytes == 0) {
            given = given.plus(giveBackOthers(null, Long.MAX_VALUE, true));
        }
        return given.mostBytes();
    }

    /// The bytes that became available.
    ///
    /// @param freedBytes bytes of blocks that waited or were in thread caches, and are free now
    /// @param returnedBytes bytes returned to the driver; may include some of the freed bytes
    private record Given(long freedBytes, long returnedBytes) {
        Given plus(Given other) {
            return new Given(freedBytes + other.freedBytes, returnedBytes + other.returnedBytes);
        }

        /// Returns the most bytes that may serve a request, from here or from the driver.
        long mostBytes() {
            return Math.max(freedBytes, returnedBytes);
        }
    }

    private Given giveBackOthers(@Nullable Shard own, long wanted, boolean wait) {
        Given given = new Given(0, 0);
        for (Shard other : shards.all()) {
            if (other != own && given.returnedBytes < wanted) {
                given = given.plus(giveBack(other, wanted - given.returnedBytes, wait));
            }
        }
        return given;
    }

    /// Gives back idle memory of one shard.
    ///
    /// @param wait whether to wait for the work of its stream
    private Given giveBack(Shard shard, long wanted, boolean wait) {
        long freed = threadCaches.empty(List.of(shard)) + settle(shard, wait);
        return new Given(freed, wait ? shard.giveBackAfterWaiting(wanted, fences) : shard.giveBack(wanted, fences));
    }

    void giveBackIdle() {
        shards.all().forEach(shard -> giveBack(shard, Long.MAX_VALUE, false));
    }

    /// Gives back idle memory until `keepBytes` are left.
    ///
    /// @param wait whether to wait for work that may use the memory
    /// @return bytes given back
    long trim(long keepBytes, boolean wait) {
        long before = counters.reservedBytes();
        growth.releaseRefused();
        shards.endOrphans(1);
        long returned = Math.max(0, before - counters.reservedBytes());
        long onHost = growth.hostBytes(); // idle memory is never kept there
        for (Shard shard : shards.all()) {
            long excess = counters.reservedBytes() + onHost - keepBytes;
            if (excess > 0) {
                returned += giveBack(shard, excess, wait).returnedBytes;
            }
        }
        shards.dropEmpty();
        return returned;
    }

    /// [Gives back][#trim(long, boolean)] idle memory, and reports for each shard which memory stayed and why.
    ///
    /// `Σ left = reserved`, if no thread allocates meanwhile and no live bytes wait on the host. Each byte of a
    /// shard is in use, waits for another stream, is idle beside a block in use, or is idle in a whole page or
    /// segment. The last kind stayed because the caller wanted to keep it, its stream was not known to have
    /// finished, or the driver refused it.
    TrimResult trim(long keepBytes, TrimMode mode) {
        boolean wait = mode == TrimMode.SYNCHRONIZE;
        threadCaches.empty(shards.all()); // so that their blocks don't count as in use
        long returned = trim(keepBytes, wait);
        if (growth.asleepBytes() > 0) {
            return leftAsleep(returned);
        }
        Reason ofWhole = counters.reservedBytes() <= keepBytes ? Reason.KEPT : wait ? Reason.REFUSED : Reason.IN_FLIGHT;
        List<Left> left = new ArrayList<>();
        for (Shard shard : shards.all()) {
            ShardSurvey survey = shards.survey(shard);
            OptionalLong stream = survey.stream();
            add(left, Reason.IN_USE, stream, survey.liveBytes());
            add(left, Reason.USED_BY_OTHER_STREAM, stream, survey.waitingBytes());
            add(left, Reason.SHARED_WITH_USED, stream, survey.idleBytes() - survey.returnableBytes());
            add(left, ofWhole, stream, survey.returnableBytes());
        }
        return result(left, returned);
    }

    /// Reports the memory that a sleeping cache still has.
    TrimResult leftAsleep(long returned) {
        List<Left> left = new ArrayList<>();
        add(left, Reason.PINNED, OptionalLong.empty(), counters.reservedBytes() - growth.refusedBytes());
        return result(left, returned);
    }

    private TrimResult result(List<Left> left, long returned) {
        add(left, Reason.REFUSED, OptionalLong.empty(), growth.refusedBytes());
        return new TrimResult(returned, OptionalLong.of(counters.reservedBytes()), left);
    }

    private static void add(List<Left> left, Reason reason, OptionalLong stream, long byteSize) {
        if (byteSize > 0) {
            left.add(new Left(reason, stream, byteSize));
        }
    }

    /// Gives back all memory; no block is live. A call that the driver refuses is repeated a few times.
    ///
    /// @return the first failure that does not end the context, with the others of its try suppressed, or null
    @Nullable
    CudaException giveBackAll() {
        CudaException failed = null;
        for (int tries = MOST_TRIES_TO_CLOSE; tries > 0 && hasMemory(); tries--) {
            CudaException refusal = forEachShard(shard -> giveBack(shard, Long.MAX_VALUE, true), null);
            refusal = forEachShard(shards::dispose, refusal);
            failed = failed != null ? failed : refusal;
            growth.releaseRefused();
        }
        return failed;
    }

    /// Returns whether this cache may still hold memory. A shard that is left may have mappings of memory
    /// that is no longer counted.
    private boolean hasMemory() {
        return !shards.all().isEmpty() || counters.reservedBytes() > 0 || growth.hostBytes() > 0;
    }

    private @Nullable CudaException forEachShard(Consumer<Shard> step, @Nullable CudaException before) {
        CudaException first = before;
        for (Shard shard : shards.all()) {
            CudaException refusal = DeadContext.refusal(() -> step.accept(shard));
            if (first == null) {
                first = refusal;
            } else if (refusal != null) {
                first.addSuppressed(refusal);
            }
        }
        return first;
    }

    /// Like [#settle], for all shards of a stream.
    long settleStream(long key, boolean wait) {
        return shards.of(key).stream().mapToLong(shard -> settle(shard, wait)).sum();
    }

    /// Empties the thread caches, and frees blocks whose fences have passed.
    ///
    /// @param wait whether to wait for the fences
    /// @return bytes freed
    long settle(Shard shard, boolean wait) {
        threadCaches.empty(shard);
        if (wait) {
            return shard.settleAfterWaiting(fences);
        }
        try (HeldLock _ = shard.holdDriver()) {
            return shard.settle(fences);
        }
    }

    private long releaseRefused() {
        long before = growth.refusedBytes();
        growth.releaseRefused();
        return Math.max(0, before - growth.refusedBytes());
    }
}
