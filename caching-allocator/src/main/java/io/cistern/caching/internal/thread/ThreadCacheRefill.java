package io.cistern.caching.internal.thread;

import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.shard.TransferCache;
import io.cistern.internal.names.StackRoom;
import org.jspecify.annotations.Nullable;

/// Moves blocks between the thread caches of a device and its shards when a thread cache has no block or no
/// room; many in one pass of a shard's lock.
///
/// 1. **A miss** takes one block for the caller and some more for the thread cache. If another thread left a
///    batch in the shard's [TransferCache], it takes that. Else, if the class misses often, it takes up to 64
///    KiB of the shard's free blocks. If the shard has no block, the thread cache and the transfer cache
///    are [emptied][#emptyCaches] before a growth.
/// 2. **A full stack**: its older half goes to the transfer cache, if another thread misses such blocks, or
///    else to the shard. See [ThreadCache] for the blocks that go when the bound is reached.
/// 3. **Large blocks** go to their shard, so that best fit sees the same as without thread caches. The
///    thread cache keeps a block only if its size was requested several times in a row; a miss of a large
///    block frees it.
///
/// Virtual threads use shared thread caches where these have blocks or room, and otherwise the shards,
/// block by block.
public final class ThreadCacheRefill {
    /// Emptying other threads' thread caches costs less than the driver calls of growth, but also takes
    /// their next blocks.
    private static final long WORTH_EMPTYING = 512L << 10;

    private final DeviceShards shards;
    private final ThreadCaches threadCaches;

    /// Whether threads keep blocks at all.
    private final boolean usesThreadCaches;

    public ThreadCacheRefill(DeviceShards shards, ThreadCaches threadCaches, boolean usesThreadCaches) {
        this.shards = shards;
        this.threadCaches = threadCaches;
        this.usesThreadCaches = usesThreadCaches;
    }

    /// Returns the calling thread's thread cache. If there is none, makes one or recycles that of an ended
    /// thread. Returns null for a virtual thread, which has none of its own, and if threads keep nothing.
    public @Nullable ThreadCache own() {
        ThreadCache threadCache = usesThreadCaches ? threadCaches.threads.ownElsewhere() : null;
        if (threadCache != null) {
            threadCache.batch.freeAll(shards.ranges);
        }
        return threadCache;
    }

    /// Allocates from the shard, and fetches more blocks of the class for the thread cache.
    ///
    /// @param threadCache the calling thread's; null if it has none
    /// @param asked the bytes that the caller asked for
    /// @return the block's address, or 0 if none fits; negative if only pages of this stream have to come back
    public long allocate(@Nullable ThreadCache threadCache, Shard shard, long asked, long stream) {
        boolean small = Sizes.hasClass(asked);
        if (threadCache == null) {
            long shared = small && usesThreadCaches ? takeShared(asked, Fences.key(stream)) : 0;
            return shared != 0 ? shared : shards.allocate(shard, asked);
        }
        return small ? allocateSmall(threadCache, shard, asked, stream) : allocateLarge(threadCache, shard, asked);
    }

    private long allocateSmall(ThreadCache threadCache, Shard shard, long asked, long stream) {
        boolean wasSelected = threadCache.isOn(stream, shard);
        ThreadCacheBins bins = select(threadCache, stream, shard);
        long address = wasSelected || bins == null ? 0 : threadCache.take(asked, stream);
        if (address != 0) {
            return address;
        }
        threadCache.small.misses++;
        return bins == null ? shards.allocate(shard, asked) : refill(threadCache, bins, shard, asked);
    }

    private long allocateLarge(ThreadCache threadCache, Shard shard, long asked) {
        threadCache.large.misses++;
        threadCache.largeMissed(shard, asked);
        if (threadCache.holdsLarge() && threadCache.tryEnter()) {
            try {
                threadCache.evictLarge(threadCache.batch);
            } finally {
                threadCache.leave();
                threadCache.batch.freeAll(shards.ranges);
            }
        }
        return shards.allocate(shard, asked);
    }

    /// Switches the thread cache to a stream; returns null if that is not possible now.
    private @Nullable ThreadCacheBins select(ThreadCache threadCache, long stream, Shard shard) {
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
            threadCache.batch.freeAll(shards.ranges);
        }
    }

    private long refill(ThreadCache threadCache, ThreadCacheBins bins, Shard shard, long asked) {
        try {
            return takeBatch(threadCache, bins, shard, asked);
        } catch (RuntimeException | Error failure) {
            threadCache.batch.freeAll(shards.ranges);
            throw failure;
        }
    }

    private long takeBatch(ThreadCache threadCache, ThreadCacheBins bins, Shard shard, long asked) {
        int sizeClass = Sizes.classOf(asked);
        long size = Sizes.byteSize(sizeClass);
        AddressBatch batch = threadCache.batch;
        shards.settleIfDue(shard);
        int wanted = threadCache.missed(bins, sizeClass);
        shard.transferCache.take(threadCache, sizeClass, Math.max(wanted, TransferCache.batch(sizeClass)), batch);
        boolean fromTransferCache = batch.count > 0;
        if (!fromTransferCache) {
            shard.allocateMany(size, asked, wanted, batch);
        }
        if (batch.count == 0) {
            return 0;
        }
        long address = batch.addresses[--batch.count];
        if (fromTransferCache) {
            threadCache.small.requested.add(asked);
            threadCache.small.hit(1, size);
        } else {
            threadCache.small.refilled(batch.count, size);
        }
        if (batch.count > 0) {
            stock(threadCache, bins, sizeClass);
        }
        return address;
    }

    /// Keeps the fetched blocks; those without room go back. If the Java heap is full, all go back: the caller
    /// has its block already.
    private void stock(ThreadCache threadCache, ThreadCacheBins bins, int sizeClass) {
        try {
            threadCache.stock(bins, sizeClass, threadCache.batch);
        } catch (OutOfMemoryError noRoom) {
            // as if there were no room
        } finally {
            threadCache.batch.freeAll(shards.ranges);
        }
    }

    /// Empties the thread cache, for all streams, and the transfer cache, before a growth. So the search for pages
    /// sees the same blocks as without thread caches, which hold different blocks each time and would delay
    /// a steady state. Also evicts the shard's blocks from other threads' caches, if they hold enough.
    public void emptyCaches(@Nullable ThreadCache threadCache, Shard shard) {
        if (threadCache != null) {
            emptyOwn(threadCache, shard);
        }
        if (threadCaches.bytesOf(shard) >= (shard.small ? WORTH_EMPTYING : 1)) {
            threadCaches.empty(shard);
        }
    }

    private void emptyOwn(ThreadCache threadCache, Shard shard) {
        AddressBatch batch = threadCache.batch;
        try {
            if (threadCache.tryEnter()) {
                try {
                    threadCache.evictAll(batch);
                } finally {
                    threadCache.leave();
                }
            }
            shard.transferCache.empty(batch);
        } finally {
            batch.freeAll(shards.ranges);
        }
    }

    /// Frees a block, into the thread cache if it belongs there.
    ///
    /// @param found the calling thread's thread cache, if the caller has looked it up
    public void free(@Nullable ThreadCache found, long address, long asked, long stream) {
        StackRoom.require();
        AddressRange range = shards.ranges.get(address);
        if (found == null && usesThreadCaches && Thread.currentThread().isVirtual()) {
            freeShared(range, address, asked, stream);
            return;
        }
        ThreadCache threadCache = found != null ? found : tryOwn();
        if (threadCache == null) {
            shards.free(range, address, asked, Fences.key(stream));
        } else {
            free(threadCache, range, address, asked, stream);
        }
    }

    /// Like [#own], but also returns null if the Java heap is full; the free then uses no thread cache.
    private @Nullable ThreadCache tryOwn() {
        try {
            return own();
        } catch (OutOfMemoryError noThreadCache) {
            return null;
        }
    }

    private void free(ThreadCache threadCache, AddressRange range, long address, long asked, long stream) {
        Shard shard = Shard.of(range);
        ThreadCacheBins bins = binsFor(threadCache, address, asked, stream, shard);
        if (bins == null || !threadCache.tryEnter()) {
            shards.free(range, address, asked, Fences.key(stream));
            return;
        }
        try {
            (shard.small ? threadCache.small : threadCache.large).requested.remove(asked);
            if (bins.ended) {
                threadCache.batch.addInHand(address);
            } else {
                bins.learn(range);
                threadCache.keep(bins, address, asked, threadCache.batch);
            }
        } finally {
            threadCache.leave();
            threadCache.batch.freeAll(shards.ranges);
        }
    }

    /// Switches the thread cache to the bins for a block, and returns them. Returns null if the block goes
    /// to its shard, also if the Java heap is too full for bins.
    private @Nullable ThreadCacheBins binsFor(
            ThreadCache threadCache, long address, long asked, long stream, Shard shard) {
        boolean passesBy = !shard.small && largePassesBy(threadCache, shard, asked);
        if (passesBy || !belongsInThreadCache(address, shard, asked, Fences.key(stream))) {
            return null;
        }
        try {
            return select(threadCache, stream, shard);
        } catch (OutOfMemoryError noBins) {
            return null;
        }
    }

    private static boolean largePassesBy(ThreadCache threadCache, Shard shard, long asked) {
        if (threadCache.keepsLarge()) {
            return false;
        }
        if (threadCache.mayKeepLarge(asked)) {
            threadCache.largePassed(shard, asked);
        }
        return true;
    }

    /// Whether a block was last used on its own stream, and its size is one that the shard holds.
    private boolean belongsInThreadCache(long address, Shard shard, long asked, long key) {
        return key == shard.key
                && !shard.isClosed()
                && Sizes.hasClass(asked) == shard.small
                && !shards.uses.mayContain(address);
    }

    private long takeShared(long asked, long key) {
        ThreadCache threadCache = threadCaches.threads.enterShared();
        try {
            ThreadCacheBins bins = threadCache.find(key);
            long address = bins == null ? 0 : bins.pop(Sizes.classOf(asked));
            if (address != 0) {
                threadCache.small.requested.add(asked);
            } else {
                threadCache.small.misses++;
            }
            return address;
        } finally {
            threadCache.leave();
        }
    }

    private void freeShared(AddressRange range, long address, long asked, long stream) {
        Shard shard = Shard.of(range);
        long key = Fences.key(stream);
        boolean belongs = shard.small && belongsInThreadCache(address, shard, asked, key);
        if (!belongs || !tryKeepShared(address, asked, shard)) {
            shards.free(range, address, asked, key);
        }
    }

    /// Keeps the block, unless the Java heap is too full for that.
    private boolean tryKeepShared(long address, long asked, Shard shard) {
        try {
            return keepShared(address, asked, shard);
        } catch (OutOfMemoryError noRoom) {
            return false;
        }
    }

    private boolean keepShared(long address, long asked, Shard shard) {
        ThreadCache threadCache = threadCaches.threads.enterShared();
        try {
            ThreadCacheBins bins = threadCache.of(shard);
            boolean kept = bins != null && threadCache.keepIfRoom(bins, address, Sizes.classOf(asked));
            if (kept) {
                threadCache.small.requested.remove(asked);
            }
            return kept;
        } finally {
            threadCache.leave();
        }
    }
}
