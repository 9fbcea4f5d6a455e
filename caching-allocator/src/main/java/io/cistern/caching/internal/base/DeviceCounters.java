package io.cistern.caching.internal.base;

import io.cistern.spi.EventSink;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAccumulator;

/// Counters of one device's cache that belong to no live shard: the bytes held from the driver, [events][CacheEvent],
/// peaks over all shards, and the totals of shards that are gone. It also announces segments to listeners.
///
/// `reservedBytes = obtainedBytes − bytes given back`; its peak is exact, because every change is counted here.
///
/// **Threads.** Any.
public final class DeviceCounters {
    public final int device;
    public final EventSink sink;
    private final AtomicLong reserved = new AtomicLong();
    private final AtomicLong obtained = new AtomicLong();
    private final LongAccumulator reservedPeak = new LongAccumulator(Math::max, 0);
    private final Map<CacheEvent, AtomicLong> events = new EnumMap<>(CacheEvent.class);
    private final Map<CacheStat, SharedPeak> all = new EnumMap<>(CacheStat.class);
    private final Map<CacheStat, SharedPeak> small = new EnumMap<>(CacheStat.class);
    private final Map<CacheStat, SharedPeak> large = new EnumMap<>(CacheStat.class);
    private final ShardTotals goneSmall = new ShardTotals();
    private final ShardTotals goneLarge = new ShardTotals();

    public DeviceCounters(int device, EventSink sink) {
        this.device = device;
        this.sink = sink;
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

    public void created(long byteSize) {
        count(CacheEvent.PAGE_CREATED);
        add(byteSize);
    }

    private void add(long byteSize) {
        obtained.addAndGet(byteSize);
        reservedPeak.accumulate(reserved.addAndGet(byteSize));
        sink.reservedChanged(device, byteSize);
    }

    public void destroyed(long byteSize) {
        count(CacheEvent.PAGE_RELEASED);
        released(byteSize);
    }

    /// Announces that a range became usable, whose bytes were counted as [created][#created].
    public void announceAcquired(long address, long byteSize) {
        count(CacheEvent.PAGES_MAPPED);
        sink.segmentAcquired(device, address, byteSize);
    }

    /// Announces that a range is no longer usable.
    public void announceReleased(long address, long byteSize) {
        count(CacheEvent.PAGES_UNMAPPED);
        sink.segmentReleased(device, address, byteSize);
    }

    /// Counts and announces a segment that came from the driver as a whole.
    public void acquired(long address, long byteSize) {
        add(byteSize);
        sink.segmentAcquired(device, address, byteSize);
    }

    /// Announces that a segment goes back as a whole, before another thread can get its addresses from the driver.
    public void releasing(long address, long byteSize) {
        sink.segmentReleased(device, address, byteSize);
    }

    /// Counts memory that went back.
    public void released(long byteSize) {
        reserved.addAndGet(-byteSize);
        sink.reservedChanged(device, -byteSize);
    }

    /// Announces that a segment stays, since its source did not take it back.
    public void stays(long address, long byteSize) {
        sink.segmentAcquired(device, address, byteSize);
    }

    public long reservedBytes() {
        return reserved.get();
    }

    /// Returns all bytes that were ever obtained.
    public long obtainedBytes() {
        return obtained.get();
    }

    public long reservedPeakBytes() {
        return reservedPeak.get();
    }

    public void count(CacheEvent event) {
        of(event).incrementAndGet();
    }

    /// Adds `byteSize` to an event that is counted in bytes.
    public void count(CacheEvent event, long byteSize) {
        of(event).addAndGet(byteSize);
    }

    private AtomicLong of(CacheEvent event) {
        return Objects.requireNonNull(events.get(event));
    }

    public long counted(CacheEvent event) {
        return of(event).get();
    }

    /// Returns the number from which the gauges of small or large shards lease.
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

    /// Returns the totals of the shards that are gone, in a new object.
    public synchronized ShardTotals gone(boolean ofSmall) {
        return new ShardTotals(ofSmall ? goneSmall : goneLarge);
    }

    public synchronized void resetPeaks() {
        reservedPeak.reset();
        reservedPeak.accumulate(reserved.get());
        all.values().forEach(SharedPeak::reset);
        small.values().forEach(SharedPeak::reset);
        large.values().forEach(SharedPeak::reset);
        goneSmall.resetPeaks();
        goneLarge.resetPeaks();
    }
}
