package io.cistern.caching;

import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.StackRoom;
import io.cistern.spi.MemoryReclaim;

/// What happens where no free block of a shard fits.
///
/// 1. Thread caches are emptied, if what they hold is worth it; above a threshold [idle memory
///    goes][IdleCollection].
/// 2. Under the shard's driver lock: frees whose fences have passed, one more search, then [growth][Growth].
/// 3. Where the driver has no memory: a [ReclaimSearch], unless a cap says that it is to fail at once.
///
/// **Threads.** Any.
final class CacheMisses {
    /// Growth by a page costs driver calls; to empty other threads' thread caches costs less, but also their next
    /// blocks.
    private static final long WORTH_EMPTYING = 512L << 10;

    private final DeviceCache cache;
    private final Growth growth;
    private final Fences fences;
    private final MemoryReclaim.Choice reclaimChoice;
    private final IdleCollection collection;
    private final boolean failsAtCap;
    /// Not the memory of graphs.
    final boolean givesBack;

    /// @param deviceBytes the device's memory
    CacheMisses(
            DeviceCache cache,
            Growth growth,
            CachingOptions options,
            long deviceBytes,
            Fences fences,
            MemoryReclaim.Choice reclaimChoice) {
        this.cache = cache;
        this.growth = growth;
        this.fences = fences;
        this.reclaimChoice = reclaimChoice;
        this.collection = new IdleCollection(cache, options.limit().thresholdBytes(deviceBytes));
        this.failsAtCap = options.limit().failsAtOnce();
        this.givesBack = options.givesBack();
    }

    /// Allocates where no free block fits.
    long allocate(StreamShard shard, long asked) {
        if (asked > Sizes.LARGEST) {
            throw new DeviceOutOfMemoryException(asked, cache.device, "more than any device has");
        }
        StackRoom.require();
        long size = cache.rounded(asked);
        shard.missed();
        cache.exchange.pagesAreMissing();
        cache.emptyThreadCaches(shard, shard.small ? WORTH_EMPTYING : 1);
        boolean collects = collection.isDue();
        long obtained = cache.reserved.obtainedBytes();
        long address;
        try {
            address = collects ? growFromIdle(shard, size) : grow(shard, size, false);
        } catch (DeviceOutOfMemoryException | CudaException failure) {
            address = allocateAfterFailure(shard, size, asked, failure);
        }
        shard.requested(asked);
        if (collects && cache.reserved.obtainedBytes() > obtained) {
            collectPages(address, asked, shard.stream);
        }
        return address;
    }

    private long growFromIdle(StreamShard shard, long size) {
        collection.collectSegments();
        return grow(shard, size, true);
    }

    private void collectPages(long address, long asked, long key) {
        try {
            collection.collectPages();
        } catch (RuntimeException | Error failure) {
            cache.free(cache.range(address), address, asked, key);
            throw failure;
        }
    }

    /// Takes a small block from new memory although what thread caches hold would do, within the share for that.
    ///
    /// @return its address, or 0 if there is no such memory
    long allocateForThreadCache(StreamShard shard, long asked) {
        if (collection.isDue() || !growth.hasThreadCacheShareLeft()) {
            return 0;
        }
        try {
            shard.missed();
            long address = grow(shard, cache.rounded(asked), false);
            shard.requested(asked);
            return address;
        } catch (DeviceOutOfMemoryException | CudaException failure) {
            if (!ReclaimSearch.outOfMemory(failure)) {
                throw failure;
            }
            return 0;
        }
    }

    private long allocateAfterFailure(StreamShard shard, long size, long asked, RuntimeException failure) {
        if (!ReclaimSearch.outOfMemory(failure)) {
            throw failure;
        }
        if (isRejection(failure)) {
            cache.reserved.counters.count(CacheEvent.REJECTION);
            throw failure;
        }
        if (!givesBack) {
            throw new DeviceOutOfMemoryException(
                    asked, cache.device, "the memory of graphs stays theirs until they are gone", failure);
        }
        try {
            return new ReclaimSearch(cache, shard, size, reclaimChoice.steps()).run(asked, failure);
        } catch (DeviceOutOfMemoryException nothingHelped) {
            if (!reclaimChoice.reclaimsLater()) {
                failed(nothingHelped);
            }
            throw nothingHelped;
        }
    }

    private boolean isRejection(RuntimeException failure) {
        return failsAtCap && ReserveCap.isReached(failure);
    }

    /// See [MemoryReclaim#reclaim].
    long reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
        if (!givesBack || isRejection(refusal)) {
            return 0;
        }
        long size = cache.rounded(Math.min(refusal.byteSize(), Sizes.LARGEST));
        return new IdleReturns(cache).giveBack(step, cache.shard(Fences.key(stream), size), size);
    }

    /// See [MemoryReclaim#failed].
    void failed(DeviceOutOfMemoryException refusal) {
        if (!isRejection(refusal)) {
            cache.reserved.counters.count(CacheEvent.OUT_OF_MEMORY);
        }
    }

    /// Searches once more, frees whose fences have passed included, and then grows.
    ///
    /// @param idleFirst see [Growth#growAndAllocate]
    long grow(StreamShard shard, long size, boolean idleFirst) {
        shard.driverLock.lock();
        try {
            shard.settle(fences);
            return growth.growAndAllocate(shard, size, idleFirst);
        } finally {
            shard.driverLock.unlock();
        }
    }
}
