package io.cistern.caching.internal.page;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.spi.EventSink;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAccumulator;

/// Counts the bytes that one device's cache holds from the driver, and their peak. `bytes = acquired −
/// released`; the peak is exact, because every change is counted here.
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

    /// Counts a new page.
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

    /// Counts a released page.
    void destroyed(long byteSize) {
        counters.count(CacheEvent.PAGE_RELEASED);
        subtract(byteSize);
    }

    /// Announces that a range became usable, whose bytes were counted as [created][#created].
    public void announceAcquired(long address, long byteSize) {
        counters.count(CacheEvent.PAGES_MAPPED);
        events.segmentAcquired(device, address, byteSize);
    }

    /// Announces that a range is not usable any more.
    public void announceReleased(long address, long byteSize) {
        counters.count(CacheEvent.PAGES_UNMAPPED);
        events.segmentReleased(device, address, byteSize);
    }

    /// Announces that a page moved to another address and kept those that it had.
    void announceMoved(long former, long address, long byteSize) {
        events.pageMoved(device, former, address, byteSize);
    }

    /// Counts and announces a segment that came from the driver as a whole.
    public void acquired(long address, long byteSize) {
        add(byteSize);
        events.segmentAcquired(device, address, byteSize);
    }

    /// Announces that a segment goes back as a whole, before another thread can get its addresses from the driver.
    public void releasing(long address, long byteSize) {
        events.segmentReleased(device, address, byteSize);
    }

    /// Counts a segment that went back.
    public void released(long byteSize) {
        subtract(byteSize);
    }

    /// Announces that a segment stays, since its source did not take it back.
    public void stays(long address, long byteSize) {
        events.segmentAcquired(device, address, byteSize);
    }

    /// Announces that a freed block waits for other streams.
    public void announceDeferred(long address, long byteSize) {
        events.freeDeferred(device, address, byteSize);
    }

    /// Announces that a block whose free was deferred is free.
    public void announceCompleted(long address, long byteSize) {
        events.freeCompleted(device, address, byteSize);
    }

    public long bytes() {
        return bytes.get();
    }

    /// All bytes that were ever obtained.
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
