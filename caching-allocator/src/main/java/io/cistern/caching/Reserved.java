package io.cistern.caching;

import io.cistern.spi.EventSink;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAccumulator;

/// Bytes that one device's cache holds from the driver, and the most it ever held. `bytes = acquired − released`;
/// the peak is exact, because every change goes through here.
final class Reserved {
    private final int device;
    private final EventSink events;
    final DeviceCounters counters;
    private final AtomicLong bytes = new AtomicLong();
    private final AtomicLong obtained = new AtomicLong();
    private final LongAccumulator peak = new LongAccumulator(Math::max, 0);

    Reserved(int device, EventSink events, DeviceCounters counters) {
        this.device = device;
        this.events = events;
        this.counters = counters;
    }

    /// A page exists from now on.
    void created(long byteSize) {
        counters.count(CacheEvent.PAGE_CREATED);
        add(byteSize);
    }

    private void add(long byteSize) {
        obtained.addAndGet(byteSize);
        peak.accumulate(bytes.addAndGet(byteSize));
        events.reservedChanged(device, byteSize);
    }

    private void subtract(long byteSize) {
        bytes.addAndGet(-byteSize);
        events.reservedChanged(device, -byteSize);
    }

    /// A page is gone.
    void destroyed(long byteSize) {
        counters.count(CacheEvent.PAGE_RELEASED);
        subtract(byteSize);
    }

    /// A range became usable whose bytes were [created][#created].
    void announceAcquired(long address, long byteSize) {
        counters.count(CacheEvent.PAGES_MAPPED);
        events.segmentAcquired(device, address, byteSize);
    }

    /// A range stopped being usable.
    void announceReleased(long address, long byteSize) {
        counters.count(CacheEvent.PAGES_UNMAPPED);
        events.segmentReleased(device, address, byteSize);
    }

    /// A page got another address besides those that it had.
    void announceMoved(long former, long address, long byteSize) {
        events.pageMoved(device, former, address, byteSize);
    }

    /// Both at once, for a segment that comes whole.
    void acquired(long address, long byteSize) {
        add(byteSize);
        events.segmentAcquired(device, address, byteSize);
    }

    /// Both at once, for a segment that goes whole.
    void released(long address, long byteSize) {
        subtract(byteSize);
        events.segmentReleased(device, address, byteSize);
    }

    long bytes() {
        return bytes.get();
    }

    /// All that was ever obtained.
    long obtainedBytes() {
        return obtained.get();
    }

    long peakBytes() {
        return peak.get();
    }

    void resetPeak() {
        peak.reset();
        peak.accumulate(bytes.get());
    }
}
