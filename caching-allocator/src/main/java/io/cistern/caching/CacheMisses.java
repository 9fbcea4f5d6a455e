package io.cistern.caching;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.MemoryRefusal;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.page.ReserveCap;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.thread.MissHandler;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.StackRoom;
import io.cistern.spi.MemoryReclaim;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.Set;
import java.util.function.LongSupplier;

/// Handles requests for which no free block of a shard fits.
///
/// 1. Thread caches that hold enough are emptied, unless only pages of the stream have to come back.
/// 2. Under the shard's driver lock: blocks whose fences have passed are freed, the shard is searched once
///    more, then memory [grows][io.cistern.caching.internal.shard.Growth].
/// 3. If the driver has no memory, any free block of the stream serves; then a [ReclaimSearch] follows. For graphs,
///    and at a limit that demands an error at once, it gives no memory back.
///
/// **Threads.** Any; one shard's driver lock is held at a time.
final class CacheMisses implements MissHandler {
    /// Emptying other threads' thread caches costs less than the driver calls of growth, but also takes
    /// their next blocks.
    private static final long WORTH_EMPTYING = 512L << 10;

    /// The steps that neither move pages nor give memory back.
    private static final Set<ReclaimStep> KEEP_ALL = EnumSet.of(ReclaimStep.OTHER_THREADS, ReclaimStep.PASSED_FENCES);

    private final CacheParts parts;
    private final DeviceShards shards;
    private final CacheReturns returns;
    private final MemoryReclaim.Choice reclaimChoice;
    private final boolean failsAtCap;
    /// False for the memory of graphs.
    private final boolean givesBack;
    private final LongSupplier nanoTime;

    CacheMisses(
            CacheParts parts,
            CacheReturns returns,
            CachingOptions options,
            MemoryReclaim.Choice reclaimChoice,
            LongSupplier nanoTime) {
        this.parts = parts;
        this.shards = parts.shards();
        this.returns = returns;
        this.reclaimChoice = reclaimChoice;
        this.nanoTime = nanoTime;
        this.failsAtCap = options.limit().failsAtOnce();
        this.givesBack = options.givesBack();
    }

    @Override
    public long allocate(Shard shard, long asked) {
        if (asked > Sizes.LARGEST) {
            throw new DeviceOutOfMemoryException(asked, parts.device(), "more than any device has");
        }
        StackRoom.require();
        long size = shards.rounded(asked);
        shard.missed();
        if (!shard.missedOwnPages()) {
            parts.threadCaches().empty(shard, shard.small ? WORTH_EMPTYING : 1);
        }
        long address;
        try {
            address = grow(shard, size, false);
        } catch (DeviceOutOfMemoryException | CudaException failure) {
            address = allocateAfterFailure(shard, size, asked, failure);
        }
        shards.requested(address, asked);
        return address;
    }

    private long allocateAfterFailure(Shard shard, long size, long asked, RuntimeException failure) {
        if (!MemoryRefusal.isOutOfMemory(failure)) {
            throw failure;
        }
        long address = allocateFromAny(shard, size);
        return address != 0 ? address : reclaimAndAllocate(shard, size, asked, failure);
    }

    private long reclaimAndAllocate(Shard shard, long size, long asked, RuntimeException failure) {
        boolean isRejection = isRejection(failure);
        Set<ReclaimStep> steps = new HashSet<>(reclaimChoice.steps());
        if (isRejection || !givesBack) {
            steps.retainAll(KEEP_ALL);
        }
        try {
            return new ReclaimSearch(parts, this, returns, shard, size, steps, nanoTime).run(asked, failure);
        } catch (DeviceOutOfMemoryException nothingHelped) {
            if (!givesBack && !isRejection) {
                throw new DeviceOutOfMemoryException(
                        asked, parts.device(), "the memory of graphs stays theirs until they are gone", nothingHelped);
            }
            if (!reclaimChoice.reclaimsLater()) {
                failed(nothingHelped);
            }
            throw nothingHelped;
        }
    }

    /// See [DeviceShards#allocateFromAny].
    long allocateFromAny(Shard shard, long size) {
        return shards.allocateFromAny(shard.stream, size, !givesBack);
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
        parts.reserved().counters.count(isRejection(refusal) ? CacheEvent.REJECTION : CacheEvent.OUT_OF_MEMORY);
    }

    /// Frees blocks whose fences have passed, searches once more, and then grows.
    ///
    /// @param idleFirst see [Growth#growAndAllocate][io.cistern.caching.internal.shard.Growth#growAndAllocate]
    long grow(Shard shard, long size, boolean idleFirst) {
        shard.driverLock.lock();
        try {
            shard.settle(parts.fences());
            return parts.growth().growAndAllocate(shard, size, idleFirst);
        } finally {
            shard.driverLock.unlock();
        }
    }
}
