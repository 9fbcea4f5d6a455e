package io.cistern.caching;

import io.cistern.internal.names.StackRoom;
import org.jspecify.annotations.Nullable;

/// What happens when a lane has no block, or no room: blocks move between the lanes of a device and its
/// shards, many in one pass of a shard's lock.
///
/// 1. **A miss** takes one block for the caller, and some more for the lane: a batch from the shard's [Depot], if
/// another thread left some there; or else, if the class misses often, up to 64 KiB from the shard, and no memory
/// is obtained for them. If the shard has none, a larger block of the lane goes back and is cut, if the
/// cache did not grow lately, or once in a while a page is added; else what the own lane
/// and the depot hold of it goes back before the cache grows.
/// 2. **No room**: older blocks of the class go to the depot, if another thread misses them, or go back, or those of
/// streams used less; see [Lane].
/// 3. **Large blocks** go past the lane, so that best fit sees what it would see without lanes. Only where the
/// same size was asked for several times in a row, the block serves again from the lane; a large miss gives it back.
///
/// Virtual threads use what shared lanes have, and go to the shards themselves for the rest, block by block.
final class LaneExchange {
    /// Unless told otherwise, a lane holds up to 96 KiB while the cache asks for pages, since blocks in lanes
    /// keep pages from others. Recorded programs reserve as much with 64 to 256 KiB; with 1 MiB more, and one took
    /// twice as many passes to come to rest.
    private static final long SMALLEST_BOUND = 96L << 10;

    /// Once it asks for none, up to so much, which serves 64 live blocks of mixed sizes. It is given back before
    /// the cache grows again: five recorded programs reserve the same as with 8 MiB.
    private static final long LARGEST_BOUND = 32L << 20;

    /// Blocks of more than an eighth of the bound go past a lane: few would fit, and fewer come again.
    private static final int LEAST_BLOCKS = 8;

    /// Misses of lanes, without one of the cache, after which lanes may hold twice as much.
    private static final int QUIET = 4096;

    private final DeviceCache cache;
    private final Lanes lanes;
    private final long laneBytes;

    /// What a lane may hold now, and misses since the cache last asked for pages. Written without order: a lost
    /// count makes no difference that matters.
    private long bound = SMALLEST_BOUND;

    private int quiet;

    /// Connects them.
    ///
    /// @param laneBytes what a lane may hold, or 0 for an amount that follows whether the cache grows
    LaneExchange(DeviceCache cache, Lanes lanes, long laneBytes) {
        this.cache = cache;
        this.lanes = lanes;
        this.laneBytes = laneBytes;
    }

    /// The most that a lane may hold now.
    private long bound() {
        return laneBytes != 0 ? laneBytes : bound;
    }

    /// The cache asks for pages.
    void pagesAreMissing() {
        quiet = 0;
        bound = SMALLEST_BOUND;
    }

    private void countQuiet() {
        if (++quiet >= QUIET) {
            quiet = 0;
            bound = Math.min(2 * bound, LARGEST_BOUND);
        }
    }

    /// The lane of a thread that has none yet; perhaps one whose thread has ended.
    Lane laneOf(Thread thread) {
        Lane lane = lanes.adoptOrMake(thread);
        cache.freeAll(lane.batch);
        return lane;
    }

    /// Allocates for the owner of a lane.
    long allocate(Lane lane, long byteSize, long stream) {
        StackRoom.require();
        boolean small = SizeClasses.has(byteSize);
        StreamShard shard = cache.shard(Fences.key(stream), byteSize);
        if (!small) {
            return allocateLarge(lane, shard, byteSize);
        }
        if (stream == lane.lastStream && passesBy(lane, byteSize)) {
            return allocateBeside(lane, shard, byteSize);
        }
        boolean wasSelected = lane.isOn(stream, shard);
        LaneBins bins = select(lane, stream, shard);
        long address = wasSelected || bins == null ? 0 : lane.take(byteSize, stream);
        if (address != 0) {
            return address;
        }
        lane.small.missed();
        lane.foundNothing();
        return bins == null ? allocateFromShard(lane, shard, byteSize) : refill(lane, bins, shard, byteSize);
    }

    private long allocateLarge(Lane lane, StreamShard shard, long byteSize) {
        lane.large.missed();
        lane.largeMissed(shard, byteSize);
        if (lane.holdsLarge()) {
            giveBackLarge(lane);
        }
        return allocateFromShard(lane, shard, byteSize);
    }

    /// Whether small blocks of a size pass a lane by.
    private boolean passesBy(Lane lane, long byteSize) {
        return lane.isUseless() || byteSize > bound() / LEAST_BLOCKS;
    }

    private long allocateBeside(Lane lane, StreamShard shard, long byteSize) {
        lane.small.missed();
        lane.passedBy();
        countQuiet();
        return allocateFromShard(lane, shard, byteSize);
    }

    /// Makes a stream the lane's last used, if it is not.
    ///
    /// @return null if that can't be now
    private @Nullable LaneBins select(Lane lane, long stream, StreamShard shard) {
        if (lane.isOn(stream, shard)) {
            return lane.last;
        }
        if (!lane.enter()) {
            return null;
        }
        try {
            return lane.use(shard, stream, lane.batch);
        } finally {
            lane.leave();
            cache.freeAll(lane.batch);
        }
    }

    private void giveBackLarge(Lane lane) {
        if (lane.enter()) {
            try {
                lane.evictLarge(lane.batch);
            } finally {
                lane.leave();
                cache.freeAll(lane.batch);
            }
        }
    }

    private long refill(Lane lane, LaneBins bins, StreamShard shard, long byteSize) {
        try {
            return takeBatch(lane, bins, shard, byteSize);
        } catch (RuntimeException | Error failure) {
            cache.freeAll(lane.batch);
            throw failure;
        }
    }

    private long takeBatch(Lane lane, LaneBins bins, StreamShard shard, long byteSize) {
        countQuiet();
        int sizeClass = SizeClasses.of(byteSize);
        long size = SizeClasses.byteSize(sizeClass);
        AddressBatch batch = lane.batch;
        cache.settleIfDue(shard);
        int wanted = lane.missed(bins, sizeClass, bound());
        shard.depot.take(lane, sizeClass, Math.max(wanted, Depot.batch(sizeClass)), batch);
        boolean fromDepot = batch.count > 0;
        if (!fromDepot) {
            shard.allocateMany(size, byteSize, wanted, batch);
            if (batch.count == 0 && isQuiet()) {
                long address = lane.isTurnToGrow() ? cache.misses.allocateForLane(shard, byteSize) : 0;
                if (address != 0) {
                    return address;
                }
                if (cutNextLarger(lane, bins, sizeClass)) {
                    shard.allocateMany(size, byteSize, wanted, batch);
                }
            }
        }
        if (batch.count == 0) {
            return growAndAllocate(lane, shard, byteSize);
        }
        long address = batch.addresses[--batch.count];
        if (fromDepot) {
            lane.small.took(byteSize);
            lane.small.hit(size);
        } else {
            lane.small.refilled(batch.count, size);
        }
        if (batch.count > 0) {
            stock(lane, bins, sizeClass);
        }
        return address;
    }

    /// What finds no room goes back, and all if the Java heap has no memory: who asked for a block has one.
    private void stock(Lane lane, LaneBins bins, int sizeClass) {
        try {
            lane.stock(bins, sizeClass, bound(), lane.batch);
        } catch (OutOfMemoryError noRoom) {
            // as if there were none
        } finally {
            cache.freeAll(lane.batch);
        }
    }

    /// Whether the cache did not ask for pages lately. While it does, larger blocks are wanted whole: with cuts,
    /// one recorded program reserved more.
    private boolean isQuiet() {
        return bound > SMALLEST_BOUND;
    }

    /// Has a larger block of the lane freed.
    private boolean cutNextLarger(Lane lane, LaneBins bins, int sizeClass) {
        if (!lane.enter()) {
            return false;
        }
        try {
            return bins.evictNextLarger(sizeClass, lane.batch);
        } finally {
            lane.leave();
            cache.freeAll(lane.batch);
        }
    }

    private long allocateFromShard(Lane lane, StreamShard shard, long byteSize) {
        long address = cache.find(shard, byteSize);
        return address != 0 ? address : growAndAllocate(lane, shard, byteSize);
    }

    /// Empties the lane first, of all streams, so that pages are looked for among blocks as they would be without
    /// lanes: what a lane holds differs from one time to the next, and a program that repeats would come to rest
    /// late. That costs a look if the lane is empty, and nothing but plain stores if it is not.
    private long growAndAllocate(Lane lane, StreamShard shard, long byteSize) {
        boolean mayFit = emptyOwn(lane, shard) && shard.small;
        return mayFit ? cache.allocate(shard, byteSize) : cache.misses.allocate(shard, byteSize);
    }

    /// Returns whether the lane or the depot held anything.
    private boolean emptyOwn(Lane lane, StreamShard shard) {
        AddressBatch batch = lane.batch;
        try {
            evictAll(lane);
            shard.depot.empty(batch);
            return batch.count > 0;
        } finally {
            cache.freeAll(batch);
        }
    }

    private static void evictAll(Lane lane) {
        if (lane.enter()) {
            try {
                lane.evictAll(lane.batch);
            } finally {
                lane.leave();
            }
        }
    }

    /// Frees for the owner of a lane.
    void free(Lane lane, long address, long byteSize, long stream) {
        StackRoom.require();
        Region region = cache.region(address);
        LaneBins bins = binsFor(lane, address, byteSize, stream, region.shard);
        if (bins == null || !lane.enter()) {
            cache.free(region, address, byteSize, Fences.key(stream));
            return;
        }
        try {
            lane.counters(region.shard.small).gave(byteSize);
            if (bins.ended) {
                lane.batch.addInHand(address);
            } else {
                bins.learn(region);
                lane.keep(bins, address, byteSize, bound(), lane.batch);
            }
        } finally {
            lane.leave();
            cache.freeAll(lane.batch);
        }
    }

    /// The lane's bins for a block, made the last used; null if it goes past the lane, as it does where the Java heap
    /// has no memory for bins.
    private @Nullable LaneBins binsFor(Lane lane, long address, long byteSize, long stream, StreamShard shard) {
        boolean passesBy = shard.small ? passesBy(lane, byteSize) : largePassesBy(lane, shard, byteSize);
        if (passesBy || !belongsInLane(address, shard, byteSize, Fences.key(stream))) {
            return null;
        }
        try {
            return select(lane, stream, shard);
        } catch (OutOfMemoryError noBins) {
            return null;
        }
    }

    private static boolean largePassesBy(Lane lane, StreamShard shard, long byteSize) {
        if (lane.keepsLarge()) {
            return false;
        }
        if (lane.mayKeepLarge(byteSize)) {
            lane.largePassed(shard, byteSize);
        }
        return true;
    }

    /// Whether a block was last used on its own stream, and has the size that it was asked for with.
    private boolean belongsInLane(long address, StreamShard shard, long byteSize, long key) {
        return key == shard.stream
                && !shard.isClosed()
                && cache.isOf(shard, byteSize)
                && !cache.isUsedElsewhere(address);
    }

    /// Allocates for a virtual thread.
    long allocateShared(long byteSize, long stream) {
        StackRoom.require();
        long key = Fences.key(stream);
        long address = SizeClasses.has(byteSize) ? takeShared(byteSize, key) : 0;
        return address != 0 ? address : cache.allocate(cache.shard(key, byteSize), byteSize);
    }

    private long takeShared(long byteSize, long key) {
        Lane lane = lanes.enterShared();
        try {
            LaneBins bins = lane.streams.find(key);
            long address = bins == null ? 0 : bins.pop(SizeClasses.of(byteSize));
            if (address != 0) {
                lane.small.took(byteSize);
            } else {
                lane.small.missed();
            }
            return address;
        } finally {
            lane.leave();
        }
    }

    /// Frees for a virtual thread.
    void freeShared(long address, long byteSize, long stream) {
        StackRoom.require();
        Region region = cache.region(address);
        long key = Fences.key(stream);
        boolean belongs = region.shard.small && belongsInLane(address, region.shard, byteSize, key);
        if (!belongs || !tryKeepShared(address, byteSize, region.shard)) {
            cache.free(region, address, byteSize, key);
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
        long bound = bound();
        Lane lane = lanes.enterShared();
        try {
            LaneBins bins = lane.streams.of(shard);
            boolean kept = bins != null && lane.streams.keepIfRoom(bins, address, SizeClasses.of(byteSize), bound);
            if (kept) {
                lane.small.gave(byteSize);
            }
            return kept;
        } finally {
            lane.leave();
        }
    }
}
