package io.cistern.caching;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.Invariant;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.growth.Growth;
import io.cistern.caching.internal.growth.PageGrowth;
import io.cistern.caching.internal.growth.SegmentGrowth;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.heap.SmallerRuns;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.page.PhysicalPages;
import io.cistern.caching.internal.page.ReserveCap;
import io.cistern.caching.internal.page.ReserveLimit;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.shard.Shards;
import io.cistern.caching.internal.thread.ThreadCache;
import io.cistern.caching.internal.thread.ThreadCacheRefill;
import io.cistern.caching.internal.thread.ThreadCaches;
import io.cistern.caching.options.CachingOption;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.StackRoom;
import io.cistern.spi.EventSink;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.PageSource;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.StreamOrder;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// The cache of one device, and all its parts.
///
/// **An allocation** asks, in this order: 1. the thread's [cache][ThreadCache]; 2. the stream's [shard][Shard], from
/// which the thread cache is [refilled][ThreadCacheRefill]; 3. what threads keep for the shard, which goes back to it;
/// 4. [growth][Growth]; 5. [reclaim][CacheReclaim], which grows again after each of its steps.
///
/// Shards count blocks in thread caches as live; thread caches are [emptied][ThreadCaches] before memory is
/// given back or reclaimed.
final class DeviceCache {
    final DeviceCounters counters;
    final Growth growth;
    final DeviceShards shards;
    final ThreadCaches threadCaches;
    final CacheReclaim reclaim;
    final CacheCompaction compaction;
    final CacheStatistics statistics;
    private final Fences fences;
    private final CrossStreamOrder order;
    final ThreadCacheRefill refill;

    /// The bytes obtained with the first request and free after it.
    private final long initialBytes;

    /// Whether a thread has obtained these bytes or is obtaining them.
    private final AtomicBoolean hasInitial;

    /// @param threadCaches where threads find their thread caches, for all devices
    DeviceCache(
            int device,
            CudaDriver driver,
            StreamOrder streams,
            EventSink events,
            SegmentSource source,
            CachingOptions options,
            MemoryReclaim.Choice reclaimChoice,
            @Nullable ThreadCache[] threadCaches) {
        AddressRangeMap ranges = new AddressRangeMap();
        AtomicLong clock = new AtomicLong();
        this.counters = new DeviceCounters(device, events);
        this.fences = new Fences(device, driver, streams, counters);
        this.order = new CrossStreamOrder(fences, clock, options.pages().reuse(), counters);
        this.growth = growth(driver, source, options, ranges, clock);
        this.threadCaches = new ThreadCaches(threadCaches, device, options.threadCacheBytes(), counters, ranges);
        this.shards = new DeviceShards(
                growth.pageTable().orElse(null),
                fences,
                order,
                new Shards(growth.splitPolicy(), clock, counters),
                ranges,
                this.threadCaches::end,
                counters,
                options.blockUnit(),
                options.usesThreadCaches(),
                options.givesBack());
        this.refill = new ThreadCacheRefill(shards, this.threadCaches, options.usesThreadCaches());
        this.reclaim = new CacheReclaim(
                counters, shards, this.threadCaches, growth, fences, reclaimChoice, options, driver::nanoTime);
        this.compaction = new CacheCompaction(counters, shards, growth, reclaim, driver, options);
        this.statistics = new CacheStatistics(counters, growth, shards, this.threadCaches);
        this.initialBytes = options.initialBytes();
        this.hasInitial = new AtomicBoolean(initialBytes == 0);
    }

    private Growth growth(
            CudaDriver driver, SegmentSource source, CachingOptions options, AddressRangeMap ranges, AtomicLong clock) {
        long deviceBytes = driver.devices().totalBytes(counters.device);
        ReserveLimit limit = options.limit();
        long capBytes = limit.capBytes(deviceBytes);
        SegmentSource capped =
                limit.isSet() ? new ReserveCap(counters.device, capBytes, limit.option()).of(source) : source;
        if (capped instanceof PageSource physical && options.growsByPages(true)) {
            PhysicalPages pages = new PhysicalPages(counters.device, driver, physical, counters);
            PageTable table = new PageTable(pages, ranges, options.pages().stableMapping());
            return new PageGrowth(table, clock, order, fences, options.pages(), deviceBytes, capBytes);
        }
        return new SegmentGrowth(
                capped, driver.virtualMemory(), counters, ranges, options.segments(), deviceBytes, fences);
    }

    /// Allocates for a request that the calling thread's cache did not serve.
    ///
    /// @param found the calling thread's cache, if the caller has looked it up
    long allocate(@Nullable ThreadCache found, long byteSize, long stream) {
        StackRoom.require();
        obtainInitial(stream);
        ThreadCache threadCache = found != null ? found : refill.own();
        long address = found == null && threadCache != null ? threadCache.take(byteSize, stream) : 0;
        if (address != 0) {
            return address;
        }
        if (byteSize > Sizes.LARGEST) {
            throw DeviceOutOfMemoryException.aboveLimit(byteSize, counters.device, "more than any device has");
        }
        long size = shards.rounded(byteSize);
        Shard shard = shards.shard(Fences.key(stream), size);
        address = refill.allocate(threadCache, shard, byteSize, stream);
        if (address > 0) {
            return address;
        }
        if (address != SmallerRuns.OWN_PAGES) { // the shard's own pages come back without a driver call
            refill.emptyCaches(threadCache, shard);
        }
        return allocateMissed(shard, size, byteSize);
    }

    private long allocateMissed(Shard shard, long size, long asked) {
        long address;
        try {
            address = growth.grow(shard, size, false);
        } catch (DeviceOutOfMemoryException | CudaException refusal) {
            address = reclaim.allocate(shard, size, asked, refusal);
        }
        shards.requested(address, asked);
        return address;
    }

    /// Obtains the initial memory for a stream, once. If that fails, the request fails; the next request tries again.
    ///
    /// @throws DeviceOutOfMemoryException if there is too little memory for it; names the option
    private void obtainInitial(long stream) {
        if (hasInitial.get() || !hasInitial.compareAndSet(false, true)) {
            return;
        }
        boolean done = false;
        try {
            long key = Fences.key(stream);
            long size = shards.rounded(initialBytes);
            long address = allocateMissed(shards.shard(key, size), size, initialBytes);
            shards.free(shards.ranges.get(address), address, initialBytes, key);
            done = true;
        } catch (DeviceOutOfMemoryException refused) {
            throw refused.passedOn(
                    initialBytes,
                    CachingOption.INITIAL_BYTES + "=" + initialBytes + " is obtained with the first request, but is"
                            + " not available: lower it, or free memory; " + refused.detail());
        } finally {
            hasInitial.set(done);
        }
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
        if (address == 0 && threadCaches.empty(own) > 0) {
            address = shards.allocateFromAny(key, size, true);
        }
        if (address != 0) {
            shards.requested(address, byteSize);
        }
        return address;
    }

    /// Returns the memory held for each stream; ended streams only if they have blocks in use.
    List<StreamMemory> describe() {
        Map<Long, StreamMemory> streams = new LinkedHashMap<>();
        for (Shard shard : shards.all()) {
            if (shard.isClosed() && shard.liveBytes() == 0) {
                continue;
            }
            StreamMemory one = new StreamMemory(shard.key, shard.liveBytes(), shard.largestFreeBytes());
            streams.merge(
                    shard.key,
                    one,
                    (a, b) -> new StreamMemory(
                            a.stream(),
                            a.liveBytes() + b.liveBytes(),
                            Math.max(a.largestFreeBytes(), b.largestFreeBytes())));
        }
        return List.copyOf(streams.values());
    }

    /// Gives back all memory; no block is live. A call that the driver refuses is repeated a few times,
    /// since no later call gives the memory back. A dead context has already released the memory. Any other
    /// failure is thrown after all shards have been handled.
    void close() {
        fences.finishAll();
        growth.pageTable().ifPresent(table -> table.physical.idle());
        CudaException failed = reclaim.giveBackAll();
        growth.abandon();
        order.close();
        fences.releasePassed();
        if (failed != null) {
            throw failed;
        }
    }

    /// Checks the shards, and that the reserved bytes are those of the shards.
    void checkInvariants() {
        threadCaches.checkInvariants();
        growth.pageTable().ifPresent(PageTable::checkInvariants);
        long mapped = 0;
        for (Shard shard : shards.all()) {
            mapped += shard.checkInvariants();
        }
        long held = counters.reservedBytes();
        long known = mapped + growth.refusedBytes() - growth.asleepBytes() - growth.hostBytes();
        Invariant.check(known == held, "reserved bytes are those of the shards", known - held);
    }
}
