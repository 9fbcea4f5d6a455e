package io.cistern.caching;

import io.cistern.caching.internal.base.MemoryRefusal;
import io.cistern.caching.internal.page.ReserveCap;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/// Tries these reclaim steps, one by one, when the driver has no memory for a request, and searches again after
/// each among all free blocks of the stream, since other threads free meanwhile:
///
/// 1. blocks of other threads' thread caches;
/// 2. blocks whose fences have passed;
/// 3. idle pages of other places and streams, if these can move, and only the rest from the driver;
/// 4. memory that is [given back][CacheReturns#giveBackFor] without waiting;
/// 5. the same after waiting, until that gives nothing more.
///
/// The error then says how much is held and how much each step gave. If the framework asks for the last two
/// steps, after steps of its own, they are not taken here.
final class ReclaimSearch {
    private final CacheParts parts;
    private final CacheMisses misses;
    private final CacheReturns returns;
    private final Shard shard;
    private final long size;
    private final Set<ReclaimStep> allowed;
    private final LongSupplier nanoTime;
    private final List<TriedStep> tried = new ArrayList<>();

    ReclaimSearch(
            CacheParts parts,
            CacheMisses misses,
            CacheReturns returns,
            Shard shard,
            long size,
            Set<ReclaimStep> allowed,
            LongSupplier nanoTime) {
        this.parts = parts;
        this.misses = misses;
        this.returns = returns;
        this.shard = shard;
        this.size = size;
        this.allowed = allowed;
        this.nanoTime = nanoTime;
    }

    /// Tries the steps in turn.
    ///
    /// @param asked the bytes that the caller asked for
    /// @param first the failure that led here
    /// @throws DeviceOutOfMemoryException if nothing helps
    long run(long asked, RuntimeException first) {
        long reservedBefore = parts.reserved().bytes();
        long key = shard.stream;
        long address = after(
                ReclaimStep.OTHER_THREADS,
                () -> parts.emptyThreadCaches(parts.shards().of(key)));
        address = address != 0 ? address : after(ReclaimStep.PASSED_FENCES, () -> returns.settleStream(key, false));
        address = address != 0 ? address : moveIdlePages();
        address = address != 0 ? address : giveBack(ReclaimStep.TRIM);
        address = address != 0 ? address : giveBack(ReclaimStep.SYNCHRONIZE);
        for (int i = 1; address == 0 && i < CacheReturns.WAYS_TO_WAIT && gaveLast(); i++) {
            address = giveBack(ReclaimStep.SYNCHRONIZE);
        }
        if (address == 0) {
            throw new DeviceOutOfMemoryException(
                    asked, parts.device(), ReserveCap.told(first) + detail(reservedBefore), first, tried);
        }
        return address;
    }

    /// Takes a step, and searches whatever it gave: other threads free meanwhile.
    private long after(ReclaimStep step, LongSupplier taking) {
        if (!allowed.contains(step)) {
            return 0;
        }
        long begun = nanoTime.getAsLong();
        long reserved = parts.reserved().bytes();
        long given = taking.getAsLong();
        tried.add(new TriedStep(step, given, nanoTime.getAsLong() - begun));
        long address = misses.allocateFromAny(shard, size);
        boolean isMore = given != 0 || parts.reserved().bytes() < reserved; // others may give back, too
        return address != 0 || !isMore ? address : tryToGrow();
    }

    private long giveBack(ReclaimStep step) {
        return after(step, () -> returns.giveBackFor(step, shard, size));
    }

    private boolean gaveLast() {
        return !tried.isEmpty() && tried.getLast().byteSize() > 0;
    }

    private long moveIdlePages() {
        if (!allowed.contains(ReclaimStep.IDLE_PAGES)) {
            return 0;
        }
        long begun = nanoTime.getAsLong();
        long address = tryToGrow();
        if (address == 0) { // a block that was found must not need Java heap
            tried.add(new TriedStep(ReclaimStep.IDLE_PAGES, 0, nanoTime.getAsLong() - begun));
        }
        return address;
    }

    /// Moves idle pages and creates only the missing bytes: a page of usual size may be larger than
    /// the memory left.
    private long tryToGrow() {
        try {
            return misses.grow(shard, size, allowed.contains(ReclaimStep.IDLE_PAGES));
        } catch (DeviceOutOfMemoryException | CudaException failure) {
            if (MemoryRefusal.isOutOfMemory(failure)) {
                return 0;
            }
            throw failure;
        }
    }

    private String detail(long reservedBefore) {
        List<Shard> shards = parts.allShards();
        long allocated = shards.stream().mapToLong(each -> each.liveBytes()).sum() - parts.threadCacheBytes();
        long largest = shards.stream().mapToLong(Shard::largestFreeBytes).max().orElse(0);
        return "caching had " + reservedBefore + " bytes reserved and has "
                + parts.reserved().bytes() + ", of which "
                + allocated + " are allocated; its largest free block is " + largest + " bytes; tried: "
                + tried.stream()
                        .map(each -> each.step().text() + " (" + each.byteSize() + " bytes)")
                        .collect(Collectors.joining(", "));
    }
}
