package io.cistern.caching;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.CacheStat;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.base.ShardTotals;
import io.cistern.caching.internal.base.SharedPeak;
import io.cistern.caching.internal.growth.Growth;
import io.cistern.caching.internal.shard.DeviceShards;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.shard.ShardSurvey;
import io.cistern.caching.internal.thread.ThreadCaches;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.Function;

/// The statistics of one device's cache by name: PyTorch's and Cistern's own.
///
/// | own name | meaning |
/// |---|---|
/// | `tier.thread_cache.hits`, `.misses`, `.hit_percent` | requests that thread caches served, or did not |
/// | `tier.shard.…` | the same for shards |
/// | `tier.pages.…` | the same for pages: hits mapped none; see below |
/// | `pages.created`, `.released` | pages obtained from the source, and returned to it |
/// | `pages.mapped`, `.unmapped` | pages mapped when created or woken, and unmapped for good or for sleep |
/// | `pages.taken`, `.aliased` | idle pages that moved, and the addresses added for that |
/// | `waits.host`, `waits.stream` | waits of the host for a fence, and of one stream for another |
/// | `steals` | idle pages that moved from one stream to another |
/// | `largest_free_block` | bytes of the largest free block, in a shard or a thread cache |
/// | `on_host_bytes` | bytes of pages that wait on the host for room on the device, after a compaction |
/// | `rounding_loss_bytes` | allocated bytes beyond those requested |
/// | `stranded_bytes.NAME.STREAM` | idle or waiting bytes kept for the stream that used them |
///
/// A hit of `tier.pages` maps no page and makes no stream wait; it may ask the driver which fences have passed, and how
/// much memory is free. `num_device_alloc` counts the misses that obtained new memory. Plain segments have
/// no such tier. NAME is `small_pool` or `large_pool`. STREAM is a handle in hexadecimal, or `ended` for
/// memory of streams that have ended.
///
/// **Peaks** over several streams are never too low. They are too high by at most 8 MiB a stream (small blocks)
/// or 128 MiB a stream (large ones), 128 blocks a stream, or a sixteenth of the stream's own peak; they are
/// exact while one stream allocates. Peaks of bytes in blocks never exceed `reserved_bytes.all.peak`, since the
/// blocks lie in that memory. Peaks of allocated and active blocks include blocks that [thread
/// caches][io.cistern.caching.internal.thread.ThreadCache] held then. `reserved_bytes.all.peak` is exact.
/// The small and the large pool each count pages taken from the other as allocated.
///
/// **Threads.** Any.
final class CacheStatistics {
    private static final String THREAD_CACHE_TIER = "tier.thread_cache";
    private static final String SHARD_TIER = "tier.shard";
    private static final List<String> TIERS = List.of(THREAD_CACHE_TIER, SHARD_TIER, "tier.pages");

    private final Growth growth;
    private final DeviceShards shards;
    private final ThreadCaches threadCaches;
    private final DeviceCounters counters;
    /// Totals at the last reset, by name.
    private volatile Map<String, Long> before = Map.of();
    /// Bytes of blocks at the last reset of peaks; more than were reserved if memory was asleep.
    private volatile long aliveAtReset;

    CacheStatistics(DeviceCounters counters, Growth growth, DeviceShards shards, ThreadCaches threadCaches) {
        this.growth = growth;
        this.shards = shards;
        this.threadCaches = threadCaches;
        this.counters = counters;
    }

    Map<String, Long> map() {
        Map<String, Long> sinceReset = before;
        Map<String, Long> figures = sinceOpening();
        figures.replaceAll((name, value) -> value - sinceReset.getOrDefault(name, 0L));
        TIERS.forEach(tier -> putHitPercent(figures, tier));
        return figures;
    }

    private static void putHitPercent(Map<String, Long> figures, String tier) {
        long hits = figures.getOrDefault(tier + ".hits", 0L);
        long searches = hits + figures.getOrDefault(tier + ".misses", 0L);
        if (searches > 0) {
            figures.put(tier + ".hit_percent", 100 * hits / searches);
        }
    }

    /// Sets the peaks to the current values. Empties the thread caches first, because their blocks would
    /// count as allocated.
    void resetPeaks() {
        threadCaches.empty(shards.all());
        threadCaches.resetPeaks();
        shards.all().forEach(shard -> shard.withCounters(ShardCounters::resetPeaks));
        counters.resetPeaks();
        aliveAtReset = sinceOpening().getOrDefault(CacheStat.ACTIVE_BYTES.key() + ".all.current", 0L);
    }

    void resetTotals() {
        Map<String, Long> now = sinceOpening();
        now.keySet().removeIf(name -> !addsUp(name));
        before = Map.copyOf(now);
    }

    private static boolean addsUp(String name) {
        int dot = name.lastIndexOf('.');
        return switch (name.substring(dot + 1)) {
            case "current", "peak", "largest_free_block", "on_host_bytes", "rounding_loss_bytes" -> false;
            default -> !name.startsWith("stranded_bytes");
        };
    }

    private Map<String, Long> sinceOpening() {
        ShardTotals small = counters.gone(true);
        ShardTotals large = counters.gone(false);
        Map<String, Long> stranded = new LinkedHashMap<>();
        long largest = threadCaches.largestBytes();
        for (Shard shard : shards.all()) {
            ShardTotals totals = shard.small ? small : large;
            shard.withCounters(totals::add);
            shard.transferCache.addTo(totals);
            ShardSurvey survey = shard.survey(false);
            largest = Math.max(largest, survey.largestFreeBytes());
            long idle = survey.idleBytes() + survey.waitingBytes() + threadCaches.bytesOf(shard);
            stranded.merge(strandedKey(survey), idle, Long::sum);
        }
        threadCaches.addTo(small, large);
        ShardTotals all = new ShardTotals(small);
        all.add(large);
        Map<String, Long> figures = new LinkedHashMap<>();
        for (CacheStat stat : CacheStat.values()) {
            put(figures, stat, small, large, all);
        }
        figures.put(THREAD_CACHE_TIER + ".hits", all.threadCacheHits);
        figures.put(THREAD_CACHE_TIER + ".misses", all.threadCacheMisses);
        figures.put(SHARD_TIER + ".hits", all.hits);
        figures.put(SHARD_TIER + ".misses", all.misses);
        for (CacheEvent event : CacheEvent.values()) {
            figures.put(event.key(), counters.counted(event));
        }
        figures.put("largest_free_block", largest);
        figures.put("on_host_bytes", growth.hostBytes());
        figures.put(
                "rounding_loss_bytes", all.current(CacheStat.ALLOCATED_BYTES) - all.current(CacheStat.REQUESTED_BYTES));
        stranded.values().removeIf(byteSize -> byteSize <= 0);
        figures.putAll(stranded);
        return figures;
    }

    private static String strandedKey(ShardSurvey shard) {
        OptionalLong stream = shard.stream();
        return "stranded_bytes." + (shard.small() ? "small_pool." : "large_pool.")
                + (stream.isEmpty() ? "ended" : "0x" + Long.toHexString(stream.getAsLong()));
    }

    private void put(Map<String, Long> figures, CacheStat stat, ShardTotals small, ShardTotals large, ShardTotals all) {
        put(figures, stat.key() + ".all", stat, all, counters::peak);
        put(figures, stat.key() + ".small_pool", stat, small, part -> counters.peak(part, true));
        put(figures, stat.key() + ".large_pool", stat, large, part -> counters.peak(part, false));
        if (stat == CacheStat.RESERVED_BYTES) {
            putReserved(figures);
        }
    }

    /// Reports the device's count of reserved bytes, since pages may temporarily belong to no shard.
    private void putReserved(Map<String, Long> figures) {
        String name = CacheStat.RESERVED_BYTES.key() + ".all.";
        long obtained = counters.obtainedBytes();
        long present = counters.reservedBytes();
        figures.put(name + "current", present);
        figures.put(name + "peak", counters.reservedPeakBytes());
        figures.put(name + "allocated", obtained);
        figures.put(name + "freed", obtained - present);
    }

    private void put(
            Map<String, Long> figures,
            String name,
            CacheStat stat,
            ShardTotals totals,
            Function<CacheStat, SharedPeak> shared) {
        long current = totals.current(stat);
        long peak = Math.min(totals.peak(stat), shared.apply(stat).peak());
        if (stat.isOfBlocks()) {
            peak = Math.min(peak, Math.max(counters.reservedPeakBytes(), aliveAtReset));
        }
        if (stat == CacheStat.REQUESTED_BYTES) {
            // Its parts are many, some negative, so the sum of their peaks says little.
            CacheStat most = CacheStat.ALLOCATED_BYTES;
            peak = Math.min(peak, Math.min(totals.peak(most), shared.apply(most).peak()));
        }
        figures.put(name + ".current", current);
        figures.put(name + ".peak", Math.max(current, peak));
        figures.put(name + ".allocated", totals.added(stat));
        figures.put(name + ".freed", totals.added(stat) - current);
    }
}
