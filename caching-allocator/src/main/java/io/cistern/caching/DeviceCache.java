package io.cistern.caching;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.growth.Growth;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.Reserved;
import io.cistern.caching.internal.shard.BlockAddresses;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.RecycledShards;
import io.cistern.caching.internal.shard.Shards;
import io.cistern.caching.internal.shard.StreamShard;
import io.cistern.caching.internal.thread.ThreadCache;
import io.cistern.caching.internal.thread.ThreadCacheRefill;
import io.cistern.caching.internal.thread.ThreadCaches;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
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
final class DeviceCache {
    final int device;
    final Reserved reserved;
    final CacheStatistics statistics;
    final DeviceShards shards;
    final ThreadCaches threadCaches;
    final ThreadCacheRefill exchange;
    final CacheMisses misses;
    final CacheReturns returns;
    private final CacheParts parts;
    private final Growth growth;
    private final Fences fences;
    private final CrossStreamOrder order;

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
        this.fences = fences;
        this.order = order;
        DeviceCounters counters = reserved.counters;
        BlockAddresses addresses = new BlockAddresses(ranges);
        this.threadCaches = new ThreadCaches(
                threadCaches,
                device,
                options.threadCaches().bytes(),
                options.largestInThreadCache(),
                counters,
                addresses);
        Shards open = new Shards(growth.splitPolicy(), clock, counters);
        RecycledShards ended = new RecycledShards(growth, fences, order, open, addresses, this.threadCaches, counters);
        this.shards = new DeviceShards(addresses, open, ended, fences, options.blockSizes(), options.givesBack());
        this.parts = new CacheParts(device, reserved, growth, fences, shards, this.threadCaches);
        this.statistics = new CacheStatistics(parts);
        this.returns = new CacheReturns(parts);
        this.misses = new CacheMisses(parts, returns, options, deviceBytes, reclaimChoice, nanoTime);
        this.exchange = new ThreadCacheRefill(shards, this.threadCaches, misses);
    }

    long allocate(long byteSize, long stream) {
        StreamShard shard = shards.shard(Fences.key(stream), shards.rounded(byteSize));
        long address = shards.find(shard, byteSize);
        return address != 0 ? address : misses.allocate(shard, byteSize);
    }

    /// Takes a free block of the stream if there is one that fits; makes no memory.
    ///
    /// @return its address, or 0
    long tryAllocate(long byteSize, long stream) {
        StreamShard shard = shards.find(stream, byteSize);
        if (shard == null) {
            return 0;
        }
        shards.settleIfDue(shard);
        long size = shards.rounded(byteSize);
        long address = shard.allocateFromAny(size);
        if (address == 0 && threadCaches.empty(shard, 1)) {
            address = shard.allocateFromAny(size);
        }
        if (address != 0) {
            shard.requested(byteSize);
        }
        return address;
    }

    void free(long address, long byteSize, long stream) {
        shards.free(shards.addresses.range(address), address, byteSize, Fences.key(stream));
    }

    /// Has what thread caches hold freed.
    void emptyThreadCaches() {
        parts.emptyThreadCaches();
    }

    /// Bytes of the blocks in thread caches: live for the shards, but idle.
    long threadCacheBytes() {
        return parts.threadCacheBytes();
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

    /// Gives idle memory back, and tells what stayed.
    TrimResult trim(long keepBytes, TrimMode mode) {
        return CacheTrim.trim(parts, returns, keepBytes, mode);
    }

    /// What is held for each stream, ended ones only with blocks in use.
    List<StreamMemory> describe() {
        Map<Long, StreamMemory> streams = new LinkedHashMap<>();
        for (StreamShard shard : shards.all()) {
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

    /// Access of other devices; empty where memory comes in whole segments.
    Optional<PagePeers> peers() {
        return growth.pages().map(table -> new PagePeers(shards, table));
    }

    /// Sleeping and waking; empty where memory comes in whole segments.
    Optional<PageSleep> sleep(CudaDriver driver) {
        return growth.pages().map(table -> new PageSleep(driver, parts, returns, table));
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
        for (StreamShard shard : shards.all()) {
            mapped += shard.checkInvariants();
        }
        long known = mapped + growth.otherBytes() - parts.asleepBytes();
        Invariant.check(known == reserved.bytes(), "reserved bytes are those of the shards", known - reserved.bytes());
    }
}
