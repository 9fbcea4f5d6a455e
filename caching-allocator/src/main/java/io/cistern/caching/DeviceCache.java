package io.cistern.caching;

import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.thread.ThreadCacheRefill;
import io.cistern.caching.internal.thread.ThreadCaches;
import io.cistern.caching.options.CachingOption;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.MemoryReclaim;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;

/// The cache of one device: its shards, and the parts that they share.
///
/// **An allocation** takes up to four steps: 1. find the stream's shard, without a lock; 2. take the best fit
/// under the shard's lock; 3. on a miss, under the shard's driver lock: free blocks whose fences have passed,
/// then [grow][Growth]; 4. if the driver has no memory, run a [ReclaimSearch].
///
/// The [thread caches][ThreadCache] of threads come before the shards. Shards count their blocks as live; they
/// are [emptied][ThreadCaches] when memory is to be given back or found.
final class DeviceCache {
    final CacheStatistics statistics;
    final DeviceShards shards;
    final ThreadCaches threadCaches;
    final ThreadCacheRefill exchange;
    final CacheMisses misses;
    final CacheReturns returns;
    final CacheCompaction compaction;
    final CacheParts parts;

    /// The bytes obtained with the first request and free after it.
    private final long initialBytes;

    /// Whether these bytes are obtained, or a thread is obtaining them.
    private final AtomicBoolean hasInitial;

    /// @param options used here for limits, thread caches and initial memory
    DeviceCache(CacheParts parts, CachingOptions options, MemoryReclaim.Choice reclaimChoice, CudaDriver driver) {
        this.parts = parts;
        this.shards = parts.shards();
        this.threadCaches = parts.threadCaches();
        this.statistics = new CacheStatistics(parts);
        this.returns = new CacheReturns(parts);
        this.misses = new CacheMisses(parts, returns, options, reclaimChoice, driver::nanoTime);
        this.compaction = new CacheCompaction(parts, returns, driver, options);
        this.exchange = new ThreadCacheRefill(shards, threadCaches, misses);
        this.initialBytes = options.initialBytes();
        this.hasInitial = new AtomicBoolean(initialBytes == 0);
    }

    /// Obtains the initial memory for a stream, once. If that fails, the request fails; the next
    /// request tries again.
    ///
    /// @throws DeviceOutOfMemoryException if there is too little memory for it; names the option
    void obtainInitial(long stream) {
        if (hasInitial.get() || !hasInitial.compareAndSet(false, true)) {
            return;
        }
        boolean done = false;
        try {
            free(allocate(initialBytes, stream), initialBytes, stream);
            done = true;
        } catch (DeviceOutOfMemoryException refused) {
            throw new DeviceOutOfMemoryException(
                    initialBytes,
                    parts.device(),
                    CachingOption.INITIAL_BYTES + "=" + initialBytes + " is obtained with the first request, and can't"
                            + " be had: lower it, or free memory; " + refused.detail(),
                    refused,
                    refused.steps());
        } finally {
            hasInitial.set(done);
        }
    }

    long allocate(long byteSize, long stream) {
        Shard shard = shards.shard(Fences.key(stream), shards.rounded(byteSize));
        long address = shards.find(shard, byteSize);
        return address != 0 ? address : misses.allocate(shard, byteSize);
    }

    /// Takes a free block of the stream if one fits; obtains no memory.
    ///
    /// @return its address, or 0
    long tryAllocate(long byteSize, long stream) {
        long size = shards.rounded(byteSize);
        long key = Fences.key(stream);
        List<Shard> own = shards.of(key);
        own.forEach(shards::settleIfDue);
        long address = shards.allocateFromAny(key, size, true);
        if (address == 0 && parts.emptyThreadCaches(own) > 0) {
            address = shards.allocateFromAny(key, size, true);
        }
        if (address != 0) {
            shards.requested(address, byteSize);
        }
        return address;
    }

    void free(long address, long byteSize, long stream) {
        shards.free(shards.ranges.get(address), address, byteSize, Fences.key(stream));
    }

    /// Returns the memory held for each stream; ended streams only if they have blocks in use.
    List<StreamMemory> describe() {
        Map<Long, StreamMemory> streams = new LinkedHashMap<>();
        for (Shard shard : shards.all()) {
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

    /// Access for other devices; empty if memory comes in whole segments.
    Optional<PagePeers> peers() {
        return parts.growth().pages().map(table -> new PagePeers(shards, table));
    }

    /// Sleep; empty if memory comes in whole segments.
    Optional<PageSleep> sleep(CudaDriver driver) {
        return parts.growth().pages().map(table -> new PageSleep(driver, parts, returns, table));
    }

    /// Gives back all memory; all blocks are free. If the driver refuses, it is asked once more, since no later
    /// call does. A dead context has taken the memory with it. Any other failure is thrown after all shards
    /// have been handled.
    void close() {
        parts.fences().finishAll();
        parts.growth().pages().ifPresent(table -> table.pages.idle());
        CudaException failed = returns.giveBackAll();
        parts.order().close();
        parts.fences().releasePassed();
        if (failed != null) {
            throw failed;
        }
    }

    /// Checks the shards, and that the reserved bytes are those of the shards.
    ///
    /// @throws IllegalStateException if an invariant does not hold
    void checkInvariants() {
        threadCaches.checkInvariants();
        parts.growth().checkInvariants();
        long mapped = 0;
        for (Shard shard : shards.all()) {
            mapped += shard.checkInvariants();
        }
        long reserved = parts.reserved().bytes();
        long known = mapped + parts.growth().refusedBytes() - parts.asleepBytes() - parts.hostBytes();
        Invariant.check(known == reserved, "reserved bytes are those of the shards", known - reserved);
    }
}
