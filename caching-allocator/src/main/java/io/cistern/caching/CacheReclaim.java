package io.cistern.caching;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.MemoryRefusal;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.page.ReserveCap;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.Growth;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.thread.ThreadCaches;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.MemoryReclaim;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/// Serves requests for which the driver has no memory. First any free block of the stream serves, wherever it lies.
/// Then come the steps of [#steps], one by one, each followed by another search among all free blocks of the stream
/// and, if there is more memory now, by another growth: other threads free meanwhile.
///
/// The error then says how much is held and how much each step gave. If the framework asks for the last two
/// steps, after steps of its own, they are not taken here. For graphs, and at a limit that demands an error at once,
/// no step moves pages or gives memory back.
///
/// **Threads.** Any; one shard's driver lock is held at a time.
final class CacheReclaim {
    /// The steps that neither move pages nor give memory back.
    private static final Set<ReclaimStep> KEEP_ALL = EnumSet.of(ReclaimStep.OTHER_THREADS, ReclaimStep.PASSED_FENCES);

    private final int device;
    private final DeviceCounters counters;
    private final DeviceShards shards;
    private final ThreadCaches threadCaches;
    private final Growth growth;
    private final CacheReturns returns;
    private final MemoryReclaim.Choice choice;
    private final boolean failsAtCap;

    /// False for the memory of graphs.
    private final boolean givesBack;

    private final LongSupplier nanoTime;

    CacheReclaim(
            int device,
            DeviceCounters counters,
            DeviceShards shards,
            ThreadCaches threadCaches,
            Growth growth,
            CacheReturns returns,
            MemoryReclaim.Choice choice,
            CachingOptions options,
            LongSupplier nanoTime) {
        this.device = device;
        this.counters = counters;
        this.shards = shards;
        this.threadCaches = threadCaches;
        this.growth = growth;
        this.returns = returns;
        this.choice = choice;
        this.failsAtCap = options.limit().failsAtOnce();
        this.givesBack = options.givesBack();
        this.nanoTime = nanoTime;
    }

    /// A step that may free memory.
    ///
    /// @param mostTurns how often it is taken, as long as it gives something
    /// @param taking takes it, and returns the bytes that it gave
    private record Step(ReclaimStep step, int mostTurns, LongSupplier taking) {}

    /// Returns the steps for a request, in their order.
    private List<Step> steps(Shard shard, long size) {
        return List.of(
                new Step(ReclaimStep.OTHER_THREADS, 1, () -> threadCaches.empty(shards.of(shard.stream))),
                new Step(ReclaimStep.PASSED_FENCES, 1, () -> returns.settleStream(shard.stream, false)),
                new Step(ReclaimStep.IDLE_PAGES, 1, () -> 0), // the growth after it takes them
                new Step(ReclaimStep.TRIM, 1, () -> returns.giveBackFor(ReclaimStep.TRIM, shard, size)),
                new Step(
                        ReclaimStep.SYNCHRONIZE,
                        CacheReturns.WAYS_TO_WAIT,
                        () -> returns.giveBackFor(ReclaimStep.SYNCHRONIZE, shard, size)));
    }

    /// Allocates after a growth has failed.
    ///
    /// @param asked the bytes that the caller asked for
    /// @param refusal why it failed; thrown again if memory is not the reason
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
        return shards.allocateFromAny(shard.stream, size, !givesBack);
    }

    private long allocateAfterSteps(Shard shard, long size, long asked, RuntimeException refusal) {
        long reservedBefore = counters.reservedBytes();
        Set<ReclaimStep> allowed = allowed(refusal);
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
                        || counters.reservedBytes() < held; // others may give back, too
                if (address == 0 && isMore) {
                    address = tryToGrow(shard, size, idleFirst);
                }
                if (address == 0 && isMore) {
                    address = allocateFromAny(shard, size); // growth frees blocks whose fences have just passed
                }
                if (address != 0) {
                    return address; // a block that was found must not need Java heap
                }
                tried.add(new TriedStep(each.step(), given, nanoTime.getAsLong() - begun));
            }
        }
        throw nothingHelped(asked, refusal, tried, reservedBefore);
    }

    private Set<ReclaimStep> allowed(RuntimeException refusal) {
        Set<ReclaimStep> allowed = new HashSet<>(choice.steps());
        if (!givesBack || isRejection(refusal)) {
            allowed.retainAll(KEEP_ALL);
        }
        return allowed;
    }

    /// Moves idle pages and creates only the missing bytes: a page of usual size may be larger than
    /// the memory left.
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

    private DeviceOutOfMemoryException nothingHelped(
            long asked, RuntimeException refusal, List<TriedStep> tried, long reservedBefore) {
        DeviceOutOfMemoryException failure = new DeviceOutOfMemoryException(
                asked, device, ReserveCap.told(refusal) + detail(tried, reservedBefore), refusal, tried);
        if (!givesBack && !isRejection(refusal)) {
            return new DeviceOutOfMemoryException(
                    asked, device, "memory of graphs stays reserved until they no longer exist", failure);
        }
        if (!choice.reclaimsLater()) {
            failed(failure);
        }
        return failure;
    }

    private String detail(List<TriedStep> tried, long reservedBefore) {
        List<Shard> all = shards.all();
        long allocated = all.stream().mapToLong(Shard::liveBytes).sum() - threadCaches.bytesOf(all);
        long largest = all.stream().mapToLong(Shard::largestFreeBytes).max().orElse(0);
        return "caching had " + reservedBefore + " bytes reserved and now has " + counters.reservedBytes() + ", of"
                + " which "
                + allocated + " are allocated; its largest free block is " + largest + " bytes; tried: "
                + tried.stream()
                        .map(each -> each.step().text() + " (" + each.byteSize() + " bytes)")
                        .collect(Collectors.joining(", "));
    }

    private boolean isRejection(RuntimeException failure) {
        return failsAtCap && ReserveCap.isReached(failure);
    }

    /// See [MemoryReclaim#reclaim].
    long reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
        if (!givesBack || isRejection(refusal)) {
            return 0;
        }
        long size = shards.rounded(refusal.byteSize());
        return returns.giveBackFor(step, shards.shard(Fences.key(stream), size), size);
    }

    /// See [MemoryReclaim#failed].
    void failed(DeviceOutOfMemoryException refusal) {
        counters.count(isRejection(refusal) ? CacheEvent.REJECTION : CacheEvent.OUT_OF_MEMORY);
    }
}
