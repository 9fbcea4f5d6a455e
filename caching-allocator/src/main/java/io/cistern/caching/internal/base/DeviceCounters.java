package io.cistern.caching.internal.base;

import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;

/// Counters of one device's cache that belong to no live shard: [events][CacheEvent], peaks over all shards,
/// and the totals of shards that are gone. **Threads.** Any.
public final class DeviceCounters {
    private final Map<CacheEvent, AtomicLong> events = new EnumMap<>(CacheEvent.class);
    private final Map<CacheStat, SharedPeak> all = new EnumMap<>(CacheStat.class);
    private final Map<CacheStat, SharedPeak> small = new EnumMap<>(CacheStat.class);
    private final Map<CacheStat, SharedPeak> large = new EnumMap<>(CacheStat.class);
    private final ShardTotals goneSmall = new ShardTotals();
    private final ShardTotals goneLarge = new ShardTotals();

    /// Makes counters at 0.
    public DeviceCounters() {
        for (CacheEvent event : CacheEvent.values()) {
            events.put(event, new AtomicLong());
        }
        for (CacheStat stat : CacheStat.values()) {
            all.put(stat, new SharedPeak());
            small.put(stat, new SharedPeak(peak(stat)));
            large.put(stat, new SharedPeak(peak(stat)));
        }
        addTo(CacheStat.ALLOCATION, CacheStat.ACTIVE);
        addTo(CacheStat.ALLOCATED_BYTES, CacheStat.ACTIVE_BYTES);
    }

    /// Makes the peak of `part` lease from that of `whole` too.
    private void addTo(CacheStat part, CacheStat whole) {
        small.put(part, new SharedPeak(peak(part), peak(whole, true)));
        large.put(part, new SharedPeak(peak(part), peak(whole, false)));
    }

    public void count(CacheEvent event) {
        of(event).incrementAndGet();
    }

    /// Adds `byteSize` to an event that is counted in bytes.
    public void count(CacheEvent event, long byteSize) {
        of(event).addAndGet(byteSize);
    }

    /// Counts an event without an atomic addition. The caller holds the one lock under which this
    /// event is counted.
    public void countAlone(CacheEvent event) {
        AtomicLong counter = of(event);
        counter.setRelease(counter.getPlain() + 1);
    }

    private AtomicLong of(CacheEvent event) {
        return Objects.requireNonNull(events.get(event));
    }

    public long counted(CacheEvent event) {
        return of(event).get();
    }

    /// The number from which the gauges of small or large shards lease.
    public SharedPeak peak(CacheStat stat, boolean ofSmall) {
        return Objects.requireNonNull((ofSmall ? small : large).get(stat));
    }

    public SharedPeak peak(CacheStat stat) {
        return Objects.requireNonNull(all.get(stat));
    }

    /// Keeps the totals of a shard that has no memory left.
    public synchronized void ended(boolean wasSmall, ShardCounters shard) {
        (wasSmall ? goneSmall : goneLarge).add(shard);
        for (CacheStat stat : CacheStat.values()) {
            shard.gauge(stat).end();
        }
    }

    /// The totals of the shards that are gone, in a new object.
    public synchronized ShardTotals gone(boolean ofSmall) {
        return new ShardTotals(ofSmall ? goneSmall : goneLarge);
    }

    public synchronized void resetPeaks() {
        all.values().forEach(SharedPeak::reset);
        small.values().forEach(SharedPeak::reset);
        large.values().forEach(SharedPeak::reset);
        goneSmall.resetPeaks();
        goneLarge.resetPeaks();
    }
}
