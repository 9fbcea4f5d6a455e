package io.cistern.caching;

import io.cistern.DeviceOutOfMemoryException;
import io.cistern.UnknownAddressException;
import io.cistern.cuda.CudaException;
import java.util.ArrayList;
import java.util.List;

/// The cache of one device: its shards, and what they share.
///
/// **The way of one allocation.** 1. the stream's shard by a look-up without a lock; 2. best fit under the shard's
/// lock; 3. on a miss, under the shard's driver lock: frees whose fences have passed, then [growth][Growth]; 4.
/// when the driver has no memory, the [FailureLadder].
///
/// **The way of one free.** 1. the region by the address, without a lock; 2. the block, under its shard's lock; 3.
/// it joins its free neighbours, or waits behind a fence.
final class DeviceCache {
    final int device;
    final Reserved reserved;
    final CacheStatistics statistics;
    private final Growth growth;
    private final Rounding rounding;
    private final boolean failsAtCap;
    private final IdleCollection collection;
    private final Fences fences;
    private final RegionMap regions;
    private final ShardTable small;
    private final ShardTable large;
    /// Shards whose streams have ended; dropped once their memory is gone. Guarded by itself.
    private final List<StreamShard> closed = new ArrayList<>();

    DeviceCache(
            int device,
            Reserved reserved,
            Growth growth,
            CachingOptions options,
            long deviceBytes,
            Fences fences,
            RegionMap regions) {
        this.device = device;
        this.reserved = reserved;
        this.growth = growth;
        this.rounding = options.rounding();
        this.failsAtCap = options.limit().failsAtOnce();
        this.collection = new IdleCollection(this, options.limit().thresholdBytes(deviceBytes));
        this.small = new ShardTable(true, growth.cutting(), reserved.counters);
        this.large = new ShardTable(false, growth.cutting(), reserved.counters);
        this.statistics = new CacheStatistics(this);
        this.fences = fences;
        this.regions = regions;
    }

    long allocate(long byteSize, long stream) {
        if (byteSize > Sizes.LARGEST) {
            throw new DeviceOutOfMemoryException(byteSize, device, "more than any device has");
        }
        long size = rounding.rounded(byteSize);
        StreamShard shard = shard(Fences.key(stream), size <= Sizes.SMALL_LIMIT);
        if (shard.settlingIsDue()) {
            settle(shard);
        }
        long address = shard.allocate(size, byteSize);
        return address != 0 ? address : allocateAfterMiss(shard, size, byteSize);
    }

    /// Takes a free block of the stream if there is one that fits; makes no memory.
    ///
    /// @return its address, or 0
    long tryAllocate(long byteSize, long stream) {
        long size = rounding.rounded(Math.min(byteSize, Sizes.LARGEST));
        StreamShard shard = table(size <= Sizes.SMALL_LIMIT).find(Fences.key(stream));
        if (shard == null) {
            return 0;
        }
        if (shard.settlingIsDue()) {
            settle(shard);
        }
        long address = shard.allocateFromAny(size);
        if (address != 0) {
            shard.requested(byteSize);
        }
        return address;
    }

    void free(long address, long byteSize, long stream) {
        Region region = regions.find(address);
        if (region == null) {
            throw new UnknownAddressException(address);
        }
        StreamShard shard = region.shard;
        long key = Fences.key(stream);
        shard.free(
                region,
                address,
                byteSize,
                key,
                key == shard.stream && (!shard.isClosed() || table(shard.small).find(key) == null));
    }

    private ShardTable table(boolean ofSmall) {
        return ofSmall ? small : large;
    }

    private StreamShard shard(long key, boolean ofSmall) {
        StreamShard shard = table(ofSmall).find(key);
        if (shard != null) {
            return shard;
        }
        fences.opened(key);
        return table(ofSmall).open(key);
    }

    /// Skipped while somebody else makes driver calls for the shard: the next allocation comes soon.
    private void settle(StreamShard shard) {
        if (shard.driverLock.tryLock()) {
            try {
                shard.settle(fences, false);
            } finally {
                shard.driverLock.unlock();
            }
        }
    }

    private long allocateAfterMiss(StreamShard shard, long size, long asked) {
        sweepClosed();
        collection.collect();
        long address;
        try {
            address = grow(shard, size);
        } catch (DeviceOutOfMemoryException | CudaException failure) {
            address = allocateAfterFailure(shard, size, asked, failure);
        }
        shard.requested(asked);
        return address;
    }

    private long allocateAfterFailure(StreamShard shard, long size, long asked, RuntimeException failure) {
        if (!FailureLadder.outOfMemory(failure)) {
            throw failure;
        }
        if (failsAtCap && ReserveCap.isReached(failure)) {
            reserved.counters.count(CacheEvent.REJECTION);
            throw failure;
        }
        reserved.counters.count(CacheEvent.RETRY);
        try {
            return new FailureLadder(this, shard, size).climb(asked, failure);
        } catch (DeviceOutOfMemoryException nothingHelped) {
            reserved.counters.count(CacheEvent.OUT_OF_MEMORY);
            throw nothingHelped;
        }
    }

    /// Searches once more, frees whose fences have passed included, and then grows.
    long grow(StreamShard shard, long size) {
        shard.driverLock.lock();
        try {
            shard.settle(fences, false);
            long address = shard.allocate(size);
            return address != 0 ? address : growth.growAndAllocate(shard, size);
        } finally {
            shard.driverLock.unlock();
        }
    }

    /// Waits for the other streams that a shard's freed blocks were used on.
    void awaitFences(StreamShard shard) {
        shard.driverLock.lock();
        try {
            shard.settle(fences, true);
        } finally {
            shard.driverLock.unlock();
        }
    }

    /// Looks at all that a shard has, and what of it could go back, when nobody makes driver calls for it.
    ShardSurvey survey(StreamShard shard) {
        shard.driverLock.lock();
        try {
            return shard.survey(true);
        } finally {
            shard.driverLock.unlock();
        }
    }

    /// Gives idle memory of one shard back to the driver.
    ///
    /// @param wait whether to wait for the work of its stream
    /// @return bytes given back
    long giveBack(StreamShard shard, long wanted, boolean wait) {
        shard.driverLock.lock();
        try {
            shard.settle(fences, wait);
            return shard.giveBack(wanted, () -> shard.quiet(fences, wait));
        } finally {
            shard.driverLock.unlock();
        }
    }

    /// As [#giveBack] without waiting, for segments that have been idle for long.
    long giveBackAged(StreamShard shard, long wanted) {
        shard.driverLock.lock();
        try {
            return shard.giveBackAged(wanted, () -> shard.quiet(fences, false));
        } finally {
            shard.driverLock.unlock();
        }
    }

    /// Gives idle memory back until so much is left.
    ///
    /// @param wait whether to wait for work that may use it
    /// @return bytes given back
    long trim(long keepBytes, boolean wait) {
        growth.releaseRefused();
        long returned = sweepClosed();
        for (StreamShard shard : shards()) {
            long excess = reserved.bytes() - keepBytes;
            if (excess > 0) {
                returned += giveBack(shard, excess, wait);
            }
        }
        return returned;
    }

    /// Bytes that belong to no shard, because the driver would not take them back.
    long refusedBytes() {
        return growth.refusedBytes();
    }

    /// The stream ends: what waits for it gets its fence now, and its own memory goes as soon as its work is
    /// done.
    void streamClosing(long stream) {
        long key = Fences.key(stream);
        for (StreamShard shard : shards()) {
            recordFences(shard);
        }
        close(small.remove(key), key);
        close(large.remove(key), key);
        fences.closed(key);
        sweepClosed();
    }

    private void recordFences(StreamShard shard) {
        shard.driverLock.lock();
        try {
            shard.recordFences(fences);
        } finally {
            shard.driverLock.unlock();
        }
    }

    private void close(@org.jspecify.annotations.Nullable StreamShard shard, long key) {
        if (shard != null) {
            shard.closed(fences.record(key));
            synchronized (closed) {
                closed.add(shard);
            }
        }
    }

    /// Gives back what ended streams left, as far as their work is done.
    private long sweepClosed() {
        long returned = 0;
        for (StreamShard shard : closedShards()) {
            returned += giveBack(shard, Long.MAX_VALUE, false);
            if (dispose(shard)) {
                synchronized (closed) {
                    closed.remove(shard);
                }
            }
        }
        return returned;
    }

    private boolean dispose(StreamShard shard) {
        shard.driverLock.lock();
        try {
            boolean ended = shard.dispose(fences);
            if (ended) {
                reserved.counters.ended(shard.small, shard.counters());
            }
            return ended;
        } finally {
            shard.driverLock.unlock();
        }
    }

    private List<StreamShard> closedShards() {
        synchronized (closed) {
            return closed.isEmpty() ? List.of() : List.copyOf(closed);
        }
    }

    /// All shards, those of ended streams first.
    List<StreamShard> shards() {
        List<StreamShard> all = new ArrayList<>(closedShards());
        all.addAll(small.all());
        all.addAll(large.all());
        return all;
    }

    /// Returns everything, all blocks being freed. A context that died has taken the memory with it.
    void close() {
        fences.finishAll();
        for (StreamShard shard : shards()) {
            try {
                giveBack(shard, Long.MAX_VALUE, true);
                dispose(shard);
            } catch (CudaException failure) {
                if (!failure.result().endsContext()) {
                    throw failure;
                }
            }
        }
        growth.releaseRefused();
    }

    /// Checks the shards, and that what is reserved is what they have.
    ///
    /// @throws IllegalStateException if an invariant does not hold
    void checkInvariants() {
        long mapped = 0;
        for (StreamShard shard : shards()) {
            mapped += shard.checkInvariants();
        }
        long known = mapped + growth.refusedBytes();
        Invariant.check(known == reserved.bytes(), "reserved bytes are those of the shards", known - reserved.bytes());
    }
}
