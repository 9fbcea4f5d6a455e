package io.cistern.caching;

import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.MemoryReclaim;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// The cache of one device: its shards, and what they share.
///
/// **The way of one allocation.** 1. the stream's shard by a look-up without a lock; 2. best fit under the
/// shard's lock; 3. on a miss, under the shard's driver lock: frees whose fences have passed, then
/// [growth][Growth]; 4. when the driver has no memory, a [ReclaimSearch].
///
/// In front of it are the [thread caches][ThreadCache] of threads, whose blocks are live for the shards; they are
/// [emptied][ThreadCaches] where memory is to go back or to be found.
///
/// **The way of one free.** 1. the region by the address, without a lock; 2. the block, under its shard's
/// lock; 3. it joins its free neighbours, or waits behind a fence.
final class DeviceCache {
    final int device;
    final Reserved reserved;
    final CacheStatistics statistics;
    private final Growth growth;
    private final Rounding rounding;
    private final LongSupplier clock;
    private final Fences fences;
    private final CrossStreamOrder order;
    private final AddressRangeMap ranges;
    private final RecordedUses uses;
    private final Shards shards;
    final ThreadCaches threadCaches;
    final ThreadCacheRefill exchange;
    /// Whether small blocks have the sizes of [SizeClasses].
    private final boolean usesThreadCaches;
    final CacheMisses misses;
    final CacheReturns returns;
    final RecycledShards ended;

    /// Makes an empty cache.
    ///
    /// @param threadCaches where threads find theirs, of all devices
    /// @param options of which rounding, limits and thread caches count here
    /// @param deviceBytes the device's memory
    DeviceCache(
            int device,
            Reserved reserved,
            Growth growth,
            CachingOptions options,
            long deviceBytes,
            MissClock clock,
            Fences fences,
            CrossStreamOrder order,
            AddressRangeMap ranges,
            @Nullable ThreadCache[] threadCaches,
            MemoryReclaim.Choice reclaimChoice,
            LongSupplier nanoTime) {
        this.device = device;
        this.reserved = reserved;
        this.growth = growth;
        this.rounding = options.rounding();
        this.clock = nanoTime;
        this.shards = new Shards(growth.movesPages(), growth.splitPolicy(), clock, reserved.counters);
        this.statistics = new CacheStatistics(this);
        this.fences = fences;
        this.uses = fences.uses;
        this.order = order;
        this.ranges = ranges;
        this.usesThreadCaches = options.usesThreadCaches();
        this.threadCaches = new ThreadCaches(threadCaches, device, options.largestInThreadCache(), reserved.counters);
        this.exchange = new ThreadCacheRefill(
                this, this.threadCaches, options.threadCaches().bytes());
        this.misses = new CacheMisses(this, growth, options, deviceBytes, fences, reclaimChoice);
        this.ended = new RecycledShards(this, growth, fences, order, shards, uses);
        this.returns = new CacheReturns(this, growth, fences);
    }

    long allocate(long byteSize, long stream) {
        long size = rounded(Math.min(byteSize, Sizes.LARGEST));
        return allocate(shard(Fences.key(stream), size), byteSize);
    }

    /// Allocates from the shard of a stream and of such sizes, past all thread caches.
    long allocate(StreamShard shard, long byteSize) {
        long address = find(shard, byteSize);
        return address != 0 ? address : misses.allocate(shard, byteSize);
    }

    /// Takes a free block of a shard for a caller who asked for so many bytes, if there is one that fits.
    ///
    /// @return its address, or 0
    long find(StreamShard shard, long byteSize) {
        if (byteSize > Sizes.LARGEST) {
            return 0;
        }
        settleIfDue(shard);
        return shard.find(rounded(byteSize), byteSize);
    }

    /// Takes a free block of the stream if there is one that fits; makes no memory.
    ///
    /// @return its address, or 0
    long tryAllocate(long byteSize, long stream) {
        long size = rounded(Math.min(byteSize, Sizes.LARGEST));
        StreamShard shard = shards.find(Fences.key(stream), size);
        if (shard == null) {
            return 0;
        }
        settleIfDue(shard);
        long address = shard.allocateFromAny(size);
        if (address == 0 && emptyThreadCaches(shard, 1)) {
            address = shard.allocateFromAny(size);
        }
        if (address != 0) {
            shard.requested(byteSize);
        }
        return address;
    }

    /// What a request for so many bytes takes of a shard.
    long rounded(long byteSize) {
        return usesThreadCaches && SizeClasses.has(byteSize)
                ? SizeClasses.rounded(byteSize)
                : rounding.rounded(byteSize);
    }

    /// Has what thread caches hold of a shard freed, if it is at least so much.
    ///
    /// @return whether it was
    boolean emptyThreadCaches(StreamShard shard, long worthIt) {
        if (threadCaches.bytesOf(shard) < worthIt) {
            return false;
        }
        AddressBatch evicted = new AddressBatch();
        try {
            threadCaches.evict(shard, evicted);
        } finally {
            freeAll(evicted);
        }
        return true;
    }

    /// Has what thread caches hold freed.
    void emptyThreadCaches() {
        shards().forEach(shard -> emptyThreadCaches(shard, 1));
    }

    /// Bytes of the blocks in thread caches: live for the shards, but idle.
    long threadCacheBytes() {
        return shards().stream().mapToLong(threadCaches::bytesOf).sum();
    }

    void free(long address, long byteSize, long stream) {
        free(range(address), address, byteSize, Fences.key(stream));
    }

    /// The region of a live block.
    ///
    /// @throws UnknownAddressException if there is none
    AddressRange range(long address) {
        AddressRange range = ranges.find(address);
        if (range == null) {
            throw new UnknownAddressException(address);
        }
        return range;
    }

    /// Frees what thread caches kept, and empties the batch.
    void freeAll(AddressBatch batch) {
        int end = batch.count;
        batch.count = 0;
        for (int from = 0; from < end; ) {
            StreamShard shard = range(batch.addresses[from]).shard;
            int to = from + 1;
            while (to < end && range(batch.addresses[to]).shard == shard) {
                to++;
            }
            shard.freeMany(ranges, batch.addresses, from, to);
            from = to;
        }
    }

    /// Frees past all thread caches.
    ///
    /// @param asked bytes that the caller had asked for
    void free(AddressRange range, long address, long asked, long key) {
        range.shard.free(range, address, asked, key, uses);
    }

    /// Says that a live block is used on another stream too until it is freed.
    ///
    /// @throws UnknownAddressException if no live block starts there
    void recordUse(long address, long stream) {
        AddressRange range = range(address);
        long key = Fences.key(stream);
        fences.opened(key);
        range.shard.recordUse(range, address, key, uses);
    }

    /// Whether a use of a live block on another stream was recorded, or may have been.
    boolean isUsedElsewhere(long address) {
        return uses.mayContain(address);
    }

    /// The shard of a stream for blocks of a size, made if there is none.
    StreamShard shard(long key, long byteSize) {
        StreamShard shard = shards.find(key, byteSize);
        if (shard != null) {
            return shard;
        }
        fences.opened(key);
        if (key < 0 && misses.givesBack) {
            ended.endOrphans(RecycledShards.SOME_ORPHANS);
        }
        return shards.open(key, byteSize, ended);
    }

    /// The handle is in use (again).
    void opened(long stream) {
        fences.opened(Fences.key(stream));
    }

    /// Whether blocks of a size lie in a shard, if it is of the right stream.
    boolean isOf(StreamShard shard, long byteSize) {
        return shards.rangeOf(shard.stream, byteSize) == shard.range;
    }

    /// Skipped while somebody else makes driver calls for the shard: the next allocation comes soon.
    void settleIfDue(StreamShard shard) {
        if (shard.settlingIsDue() && shard.driverLock.tryLock()) {
            try {
                shard.settle(fences);
            } finally {
                shard.driverLock.unlock();
            }
        }
    }

    /// Keeps the pages under a range of live blocks where they are.
    void pin(long address, long byteSize, Page.Pin reason) {
        growth.setPinned(address, byteSize, reason, true);
    }

    /// Takes a reason for that away.
    void unpin(long address, long byteSize, Page.Pin reason) {
        growth.setPinned(address, byteSize, reason, false);
    }

    /// Takes a reason away from all memory.
    void unpinAll(Page.Pin reason) {
        growth.unpinAll(reason);
    }

    /// The time on the driver's clock.
    long nanoTime() {
        return clock.getAsLong();
    }

    /// Has what thread caches hold freed, for a request of a shard's.
    ///
    /// @return how many bytes
    long emptyThreadCaches(StreamShard shard) {
        long before = threadCacheBytes();
        emptyThreadCaches(shard, 1);
        return Math.max(0, before - threadCacheBytes());
    }

    /// Empties the thread caches, and frees the blocks that other streams used and have got past.
    ///
    /// @param wait whether to wait for those streams
    /// @return bytes freed
    long settle(StreamShard shard, boolean wait) {
        emptyThreadCaches(shard, 1);
        if (wait) {
            return shard.settleAfterWaiting(fences);
        }
        shard.driverLock.lock();
        try {
            return shard.settle(fences);
        } finally {
            shard.driverLock.unlock();
        }
    }

    /// What is held for each stream, ended ones only with blocks in use.
    List<StreamMemory> describe() {
        Map<Long, StreamMemory> streams = new LinkedHashMap<>();
        for (StreamShard shard : shards()) {
            if (shard.isClosed() && shard.liveBytes() == 0) {
                continue;
            }
            StreamMemory one = new StreamMemory(shard.stream, shard.liveBytes(), shard.largestFreeBytes());
            streams.merge(
                    shard.stream,
                    one,
                    (a, b) -> new StreamMemory(
                            a.stream(),
                            a.liveBytes() + b.liveBytes(),
                            Math.max(a.largestFreeBytes(), b.largestFreeBytes())));
        }
        return List.copyOf(streams.values());
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

    /// Access of other devices; empty where memory comes in whole segments.
    Optional<PagePeers> peers() {
        return growth.pages().map(table -> new PagePeers(this, table));
    }

    /// Waits for growth that began before: who grows holds the driver lock until his pages are published.
    void awaitGrowth() {
        shards().forEach(this::survey);
    }

    /// Bytes of the shards that have no memory, because they sleep.
    long asleepBytes() {
        return growth.pages().map(PageTable::asleepBytes).orElse(0L);
    }

    /// All shards, those of ended streams first.
    List<StreamShard> shards() {
        List<StreamShard> all = new ArrayList<>(ended.shards());
        all.addAll(shards.all());
        return all;
    }

    /// Returns everything, all blocks being freed; what the driver refuses, it is asked once more, since nobody
    /// does later. A context that died has taken the memory with it; another failure is thrown when all shards
    /// have been seen to.
    void close() {
        fences.finishAll();
        CudaException failed = returns.giveBackAll();
        order.close();
        fences.releasePassed();
        if (failed != null) {
            throw failed;
        }
    }

    /// Checks the shards, and that what is reserved is what they have.
    ///
    /// @throws IllegalStateException if an invariant does not hold
    void checkInvariants() {
        threadCaches.checkInvariants();
        long mapped = 0;
        for (StreamShard shard : shards()) {
            mapped += shard.checkInvariants();
        }
        long known = mapped + growth.otherBytes() - asleepBytes();
        Invariant.check(known == reserved.bytes(), "reserved bytes are those of the shards", known - reserved.bytes());
    }
}
