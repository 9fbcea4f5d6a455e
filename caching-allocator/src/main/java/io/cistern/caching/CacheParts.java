package io.cistern.caching;

import io.cistern.caching.internal.base.DeviceCounters;
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
import io.cistern.caching.internal.shard.Growth;
import io.cistern.caching.internal.shard.RecycledShards;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.shard.Shards;
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

/// The parts of one device's cache, for classes that work with several of them.
///
/// @param deviceBytes the device's memory
/// @param reserved counts the bytes held from the driver
/// @param growth gets more memory
/// @param fences the fences of the device's streams
/// @param order the order between streams
/// @param shards the blocks
/// @param threadCaches the blocks that threads keep
record CacheParts(
        int device,
        long deviceBytes,
        Reserved reserved,
        Growth growth,
        Fences fences,
        CrossStreamOrder order,
        DeviceShards shards,
        ThreadCaches threadCaches) {
    /// @param threadCaches where threads find their thread caches, for all devices
    static CacheParts of(
            int device,
            CudaDriver driver,
            StreamOrder streams,
            EventSink events,
            SegmentSource source,
            CachingOptions options,
            @Nullable ThreadCache[] threadCaches) {
        DeviceCounters counters = new DeviceCounters();
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
                                new PhysicalPages(device, driver, physical, reserved),
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
        ThreadCaches caches =
                new ThreadCaches(threadCaches, device, options.threadCaches().bytes(), counters, ranges);
        Shards open = new Shards(growth.splitPolicy(), clock, reserved);
        RecycledShards ended = new RecycledShards(growth, fences, order, open, ranges, caches, counters);
        DeviceShards shards = new DeviceShards(
                ranges, open, ended, fences, options.blockUnit(), options.usesThreadCaches(), options.givesBack());
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

    /// Returns all shards, those of ended streams first.
    List<Shard> allShards() {
        return shards.all();
    }

    /// Bytes of the blocks in thread caches: live for the shards, but idle.
    long threadCacheBytes() {
        return threadCaches.bytesOf(allShards());
    }

    /// Frees the blocks of a stream's shards in thread caches, for a request on the stream.
    ///
    /// @return bytes freed
    long emptyThreadCaches(List<Shard> ofStream) {
        long before = threadCacheBytes();
        ofStream.forEach(shard -> threadCaches.empty(shard, 1));
        return Math.max(0, before - threadCacheBytes());
    }

    /// Frees all blocks in thread caches.
    void emptyThreadCaches() {
        allShards().forEach(shard -> threadCaches.empty(shard, 1));
    }

    /// Bytes of the shards' pages that have no memory, because they sleep.
    long asleepBytes() {
        return growth.pages().map(PageTable::asleepBytes).orElse(0L);
    }

    /// Bytes of pages whose memory is on the host.
    long hostBytes() {
        return growth.pages().stream()
                .flatMap(table -> table.onHost().stream())
                .mapToLong(page -> page.byteSize)
                .sum();
    }
}
