package io.cistern.caching.internal.page;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.spi.EventSink;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAccumulator;

/// Bytes that one device's cache holds from the driver, and the most it ever held. `bytes = acquired −
/// released`; the peak is exact, because every change goes through here.
public final class Reserved {
    private final int device;
    private final EventSink events;
    public final DeviceCounters counters;
    private final AtomicLong bytes = new AtomicLong();
    private final AtomicLong obtained = new AtomicLong();
    private final LongAccumulator peak = new LongAccumulator(Math::max, 0);

    public Reserved(int device, EventSink events, DeviceCounters counters) {
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
    public void announceAcquired(long address, long byteSize) {
        counters.count(CacheEvent.PAGES_MAPPED);
        events.segmentAcquired(device, address, byteSize);
    }

    /// A range stopped being usable.
    public void announceReleased(long address, long byteSize) {
        counters.count(CacheEvent.PAGES_UNMAPPED);
        events.segmentReleased(device, address, byteSize);
    }

    /// A page got another address besides those that it had.
    void announceMoved(long former, long address, long byteSize) {
        events.pageMoved(device, former, address, byteSize);
    }

    /// Both at once, for a segment that comes whole.
    public void acquired(long address, long byteSize) {
        add(byteSize);
        events.segmentAcquired(device, address, byteSize);
    }

    /// Both at once, for a segment that goes whole.
    public void released(long address, long byteSize) {
        subtract(byteSize);
        events.segmentReleased(device, address, byteSize);
    }

    /// A freed block has to wait for other streams.
    public void announceDeferred(long address, long byteSize) {
        events.freeDeferred(device, address, byteSize);
    }

    /// A block whose free was deferred is free.
    public void announceCompleted(long address, long byteSize) {
        events.freeCompleted(device, address, byteSize);
    }

    public long bytes() {
        return bytes.get();
    }

    /// All that was ever obtained.
    public long obtainedBytes() {
        return obtained.get();
    }

    public long peakBytes() {
        return peak.get();
    }

    public void resetPeak() {
        peak.reset();
        peak.accumulate(bytes.get());
    }
}
