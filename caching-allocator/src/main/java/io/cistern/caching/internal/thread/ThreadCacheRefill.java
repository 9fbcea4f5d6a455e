package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.SizeClasses;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.StreamShard;
import io.cistern.caching.internal.shard.TransferCache;
import io.cistern.internal.names.StackRoom;
import org.jspecify.annotations.Nullable;

/// What happens when a thread cache has no block, or no room: blocks move between the thread caches of a device
/// and its shards, many in one pass of a shard's lock.
///
/// 1. **A miss** takes one block for the caller, and some more for the thread cache: a batch from the shard's
/// [TransferCache], if another thread left some there; or else, if the class misses often, up to 64 KiB from the
/// shard, and no memory is obtained for them. If the shard has none, what the own thread cache and the transfer
/// cache hold of it goes back before the cache grows.
/// 2. **A full stack**: its older half goes to the transfer cache, if another thread misses such blocks, or goes
/// back; see [ThreadCacheStreams] for what goes where the bound is reached.
/// 3. **Large blocks** go past the thread cache, so that best fit sees what it would see without thread caches.
/// Only where the same size was asked for several times in a row, the block serves again from the thread cache; a
/// large miss gives it back.
///
/// Virtual threads use what shared thread caches have, and go to the shards themselves for the rest, block by
/// block.
public final class ThreadCacheRefill {
    private final DeviceShards shards;
    private final AddressRangeMap ranges;
    private final MissHandler misses;
    private final ThreadCaches threadCaches;

    /// Connects them.
    public ThreadCacheRefill(DeviceShards shards, ThreadCaches threadCaches, MissHandler misses) {
        this.shards = shards;
        this.ranges = shards.ranges;
        this.misses = misses;
        this.threadCaches = threadCaches;
    }

    /// The calling thread's thread cache, made if there is none, perhaps from that of a thread which has ended;
    /// null for a virtual thread, which has none of its own.
    @Nullable
    public ThreadCache ownThreadCache() {
        ThreadCache threadCache = threadCaches.own();
        if (threadCache != null) {
            threadCache.batch.freeAll(ranges);
        }
        return threadCache;
    }

    /// Allocates for the owner of a thread cache.
    public long allocate(ThreadCache threadCache, long byteSize, long stream) {
        StackRoom.require();
        boolean small = SizeClasses.has(byteSize);
        StreamShard shard = shards.shard(Fences.key(stream), byteSize);
        if (!small) {
            return allocateLarge(threadCache, shard, byteSize);
        }
        boolean wasSelected = threadCache.isOn(stream, shard);
        ThreadCacheBins bins = select(threadCache, stream, shard);
        long address = wasSelected || bins == null ? 0 : threadCache.take(byteSize, stream);
        if (address != 0) {
            return address;
        }
        threadCache.small.missed();
        return bins == null
                ? allocateFromShard(threadCache, shard, byteSize)
                : refill(threadCache, bins, shard, byteSize);
    }

    private long allocateLarge(ThreadCache threadCache, StreamShard shard, long byteSize) {
        threadCache.large.missed();
        threadCache.largeMissed(shard, byteSize);
        if (threadCache.holdsLarge()) {
            giveBackLarge(threadCache);
        }
        return allocateFromShard(threadCache, shard, byteSize);
    }

    /// Makes a stream the thread cache's last used, if it is not.
    ///
    /// @return null if that can't be now
    private @Nullable ThreadCacheBins select(ThreadCache threadCache, long stream, StreamShard shard) {
        if (threadCache.isOn(stream, shard)) {
            return threadCache.last;
        }
        if (!threadCache.tryEnter()) {
            return null;
        }
        try {
            return threadCache.changeTo(shard, stream, threadCache.batch);
        } finally {
            threadCache.leave();
            threadCache.batch.freeAll(ranges);
        }
    }

    private void giveBackLarge(ThreadCache threadCache) {
        if (threadCache.tryEnter()) {
            try {
                threadCache.evictLarge(threadCache.batch);
            } finally {
                threadCache.leave();
                threadCache.batch.freeAll(ranges);
            }
        }
    }

    private long refill(ThreadCache threadCache, ThreadCacheBins bins, StreamShard shard, long byteSize) {
        try {
            return takeBatch(threadCache, bins, shard, byteSize);
        } catch (RuntimeException | Error failure) {
            threadCache.batch.freeAll(ranges);
            throw failure;
        }
    }

    private long takeBatch(ThreadCache threadCache, ThreadCacheBins bins, StreamShard shard, long byteSize) {
        int sizeClass = SizeClasses.of(byteSize);
        long size = SizeClasses.byteSize(sizeClass);
        AddressBatch batch = threadCache.batch;
        shards.settleIfDue(shard);
        int wanted = threadCache.missed(bins, sizeClass);
        shard.transferCache.take(threadCache, sizeClass, Math.max(wanted, TransferCache.batch(sizeClass)), batch);
        boolean fromTransferCache = batch.count > 0;
        if (!fromTransferCache) {
            shard.allocateMany(size, byteSize, wanted, batch);
        }
        if (batch.count == 0) {
            return growAndAllocate(threadCache, shard, byteSize);
        }
        long address = batch.addresses[--batch.count];
        if (fromTransferCache) {
            threadCache.small.took(byteSize);
            threadCache.small.hit(1, size);
        } else {
            threadCache.small.refilled(batch.count, size);
        }
        if (batch.count > 0) {
            stock(threadCache, bins, sizeClass);
        }
        return address;
    }

    /// What finds no room goes back, and all if the Java heap has no memory: who asked for a block has one.
    private void stock(ThreadCache threadCache, ThreadCacheBins bins, int sizeClass) {
        try {
            threadCache.stock(bins, sizeClass, threadCache.batch);
        } catch (OutOfMemoryError noRoom) {
            // as if there were none
        } finally {
            threadCache.batch.freeAll(ranges);
        }
    }

    private long allocateFromShard(ThreadCache threadCache, StreamShard shard, long byteSize) {
        long address = shards.find(shard, byteSize);
        return address != 0 ? address : growAndAllocate(threadCache, shard, byteSize);
    }

    /// Empties the thread cache first, of all streams, and the transfer cache, so that pages are looked for among
    /// blocks as they would be without thread caches: what a thread cache holds differs from one time to the next,
    /// and a program that repeats would come to rest late. That costs a look if the thread cache is empty, and
    /// nothing but plain stores if it is not.
    private long growAndAllocate(ThreadCache threadCache, StreamShard shard, long byteSize) {
        emptyOwn(threadCache, shard);
        return misses.allocate(shard, byteSize);
    }

    private long allocate(StreamShard shard, long byteSize) {
        long address = shards.find(shard, byteSize);
        return address != 0 ? address : misses.allocate(shard, byteSize);
    }

    private void emptyOwn(ThreadCache threadCache, StreamShard shard) {
        AddressBatch batch = threadCache.batch;
        try {
            evictAll(threadCache);
            shard.transferCache.empty(batch);
        } finally {
            batch.freeAll(ranges);
        }
    }

    private static void evictAll(ThreadCache threadCache) {
        if (threadCache.tryEnter()) {
            try {
                threadCache.evictAll(threadCache.batch);
            } finally {
                threadCache.leave();
            }
        }
    }

    /// Frees for the owner of a thread cache.
    public void free(ThreadCache threadCache, long address, long byteSize, long stream) {
        StackRoom.require();
        AddressRange range = ranges.get(address);
        StreamShard shard = StreamShard.of(range);
        ThreadCacheBins bins = binsFor(threadCache, address, byteSize, stream, shard);
        if (bins == null || !threadCache.tryEnter()) {
            shards.free(range, address, byteSize, Fences.key(stream));
            return;
        }
        try {
            (shard.small ? threadCache.small : threadCache.large).gave(byteSize);
            if (bins.ended) {
                threadCache.batch.addInHand(address);
            } else {
                bins.learn(range);
                threadCache.keep(bins, address, byteSize, threadCache.batch);
            }
        } finally {
            threadCache.leave();
            threadCache.batch.freeAll(ranges);
        }
    }

    /// The thread cache's bins for a block, made the last used; null if it goes past the thread cache, as it does
    /// where the Java heap has no memory for bins.
    private @Nullable ThreadCacheBins binsFor(
            ThreadCache threadCache, long address, long byteSize, long stream, StreamShard shard) {
        boolean passesBy = !shard.small && largePassesBy(threadCache, shard, byteSize);
        if (passesBy || !belongsInThreadCache(address, shard, byteSize, Fences.key(stream))) {
            return null;
        }
        try {
            return select(threadCache, stream, shard);
        } catch (OutOfMemoryError noBins) {
            return null;
        }
    }

    private static boolean largePassesBy(ThreadCache threadCache, StreamShard shard, long byteSize) {
        if (threadCache.keepsLarge()) {
            return false;
        }
        if (threadCache.mayKeepLarge(byteSize)) {
            threadCache.largePassed(shard, byteSize);
        }
        return true;
    }

    /// Whether a block was last used on its own stream, and has the size that it was asked for with.
    private boolean belongsInThreadCache(long address, StreamShard shard, long byteSize, long key) {
        return key == shard.stream
                && !shard.isClosed()
                && shards.isOf(shard, byteSize)
                && !shards.isUsedElsewhere(address);
    }

    /// Allocates for a virtual thread.
    public long allocateShared(long byteSize, long stream) {
        StackRoom.require();
        long key = Fences.key(stream);
        long address = SizeClasses.has(byteSize) ? takeShared(byteSize, key) : 0;
        return address != 0 ? address : allocate(shards.shard(key, byteSize), byteSize);
    }

    private long takeShared(long byteSize, long key) {
        ThreadCache threadCache = threadCaches.enterShared();
        try {
            ThreadCacheBins bins = threadCache.streams.find(key);
            long address = bins == null ? 0 : bins.pop(SizeClasses.of(byteSize));
            if (address != 0) {
                threadCache.small.took(byteSize);
            } else {
                threadCache.small.missed();
            }
            return address;
        } finally {
            threadCache.leave();
        }
    }

    /// Frees for a virtual thread.
    public void freeShared(long address, long byteSize, long stream) {
        StackRoom.require();
        AddressRange range = ranges.get(address);
        StreamShard shard = StreamShard.of(range);
        long key = Fences.key(stream);
        boolean belongs = shard.small && belongsInThreadCache(address, shard, byteSize, key);
        if (!belongs || !tryKeepShared(address, byteSize, shard)) {
            shards.free(range, address, byteSize, key);
        }
    }

    /// Not where the Java heap has no memory for that.
    private boolean tryKeepShared(long address, long byteSize, StreamShard shard) {
        try {
            return keepShared(address, byteSize, shard);
        } catch (OutOfMemoryError noRoom) {
            return false;
        }
    }

    private boolean keepShared(long address, long byteSize, StreamShard shard) {
        ThreadCache threadCache = threadCaches.enterShared();
        try {
            ThreadCacheBins bins = threadCache.streams.of(shard);
            boolean kept = bins != null && threadCache.streams.keepIfRoom(bins, address, SizeClasses.of(byteSize));
            if (kept) {
                threadCache.small.gave(byteSize);
            }
            return kept;
        } finally {
            threadCache.leave();
        }
    }
}
