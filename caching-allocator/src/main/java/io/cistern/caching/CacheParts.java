package io.cistern.caching;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.growth.Growth;
import io.cistern.caching.internal.growth.PageGrowth;
import io.cistern.caching.internal.growth.SegmentGrowth;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.MissClock;
import io.cistern.caching.internal.page.MappedRanges;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.page.PhysicalPages;
import io.cistern.caching.internal.page.ReserveCap;
import io.cistern.caching.internal.page.ReserveLimit;
import io.cistern.caching.internal.page.Reserved;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.RecycledShards;
import io.cistern.caching.internal.shard.Shards;
import io.cistern.caching.internal.shard.StreamShard;
import io.cistern.caching.internal.thread.ThreadCache;
import io.cistern.caching.internal.thread.ThreadCaches;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.EventSink;
import io.cistern.spi.PageSource;
import io.cistern.spi.RangeSource;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.StreamOrder;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// What the cache of one device is made of, for those who work with several parts of it.
///
/// @param deviceBytes the device's memory
/// @param reserved what is held from the driver
/// @param growth where more comes from
/// @param fences of its streams
/// @param order between them
/// @param shards its blocks
/// @param threadCaches what threads keep of them
record CacheParts(
        int device,
        long deviceBytes,
        Reserved reserved,
        Growth growth,
        Fences fences,
        CrossStreamOrder order,
        DeviceShards shards,
        ThreadCaches threadCaches) {
    /// @param threadCaches where threads find theirs, of all devices
    static CacheParts of(
            int device,
            CudaDriver driver,
            StreamOrder streams,
            EventSink events,
            SegmentSource source,
            CachingOptions options,
            @Nullable ThreadCache[] threadCaches) {
        DeviceCounters counters = new DeviceCounters(options.splitOptions().oversizeBytes());
        Reserved reserved = new Reserved(device, events, counters);
        AddressRangeMap ranges = new AddressRangeMap();
        Fences fences = new Fences(device, driver, streams, counters);
        MissClock clock = new MissClock();
        CrossStreamOrder order =
                new CrossStreamOrder(fences, clock, options.pages().reuse(), counters);
        long deviceBytes = driver.devices().totalBytes(device);
        SegmentSource segments = capped(source, device, deviceBytes, options.limit());
        Growth growth = segments instanceof PageSource physical && options.growsByPages(true)
                ? new PageGrowth(
                        new PageTable(
                                new PhysicalPages(device, driver.virtualMemory(), physical, reserved),
                                ranges,
                                options.pages().stableMapping()),
                        clock,
                        order,
                        fences,
                        options.pages(),
                        deviceBytes,
                        options.limit().capBytes(deviceBytes),
                        () -> driver.memory().freeBytes(device))
                : new SegmentGrowth(device, plain(segments, driver), reserved, ranges, options.segments(), deviceBytes);
        ThreadCaches caches = new ThreadCaches(
                threadCaches, device, options.threadCaches().bytes(), options.largestInThreadCache(), counters, ranges);
        Shards open = new Shards(growth.splitPolicy(), clock, reserved);
        RecycledShards ended = new RecycledShards(growth, fences, order, open, ranges, caches, counters);
        DeviceShards shards = new DeviceShards(ranges, open, ended, fences, options.blockSizes(), options.givesBack());
        return new CacheParts(device, deviceBytes, reserved, growth, fences, order, shards, caches);
    }

    private static SegmentSource capped(SegmentSource source, int device, long deviceBytes, ReserveLimit limit) {
        return limit.isSet() ? new ReserveCap(device, limit.capBytes(deviceBytes), limit.option()).of(source) : source;
    }

    private static RangeSource plain(SegmentSource source, CudaDriver driver) {
        return switch (source) {
            case PageSource physical -> new MappedRanges(driver.virtualMemory(), physical);
            case RangeSource plain -> plain;
        };
    }

    DeviceCounters counters() {
        return reserved.counters;
    }

    /// All shards, those of ended streams first.
    List<StreamShard> allShards() {
        return shards.all();
    }

    /// Bytes of the blocks in thread caches: live for the shards, but idle.
    long threadCacheBytes() {
        return threadCaches.bytesOf(allShards());
    }

    /// Has what thread caches hold of a shard freed, for a request of it.
    ///
    /// @return how many bytes
    long emptyThreadCaches(StreamShard shard) {
        long before = threadCacheBytes();
        threadCaches.empty(shard, 1);
        return Math.max(0, before - threadCacheBytes());
    }

    /// Has what thread caches hold freed.
    void emptyThreadCaches() {
        allShards().forEach(shard -> threadCaches.empty(shard, 1));
    }

    /// Bytes of the shards that have no memory, because they sleep.
    long asleepBytes() {
        return growth.pages().map(PageTable::asleepBytes).orElse(0L);
    }
}
