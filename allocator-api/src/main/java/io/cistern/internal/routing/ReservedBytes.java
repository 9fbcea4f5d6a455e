package io.cistern.internal.routing;

import io.cistern.internal.events.Events;
import io.cistern.internal.events.Observers;
import io.cistern.spi.EventSink;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;

/// Receives the reports of one allocator, and of all that it is built on, about the memory that it holds, by
/// device. It passes events on to the observers.
///
/// **Threads.** Any; nothing here waits, since allocators report under their locks.
public final class ReservedBytes implements EventSink {
    private final AtomicLongArray bytes;

    /// By device, 1 once the allocator has reported a change.
    private final AtomicLongArray tells;

    private final AtomicReferenceArray<Meter> meters;
    private final String allocator;
    private final Observers observers;

    /// @param allocator the allocator's name in events
    public ReservedBytes(String allocator, int deviceCount, Observers observers) {
        this.allocator = allocator;
        this.observers = observers;
        bytes = new AtomicLongArray(deviceCount);
        tells = new AtomicLongArray(deviceCount);
        meters = new AtomicReferenceArray<>(deviceCount);
    }

    /// Sets the meter that checks its thresholds whenever the bytes of its device change.
    void move(int device, Meter meter) {
        meters.set(device, meter);
    }

    boolean isTold(int device) {
        return tells.get(device) != 0;
    }

    long bytes(int device) {
        return bytes.get(device);
    }

    @Override
    public void segmentAcquired(int device, long address, long byteSize) {
        observers.post(Events.SEGMENT_ACQUIRED, allocator, device, address, byteSize, 0);
    }

    @Override
    public void segmentReleased(int device, long address, long byteSize) {
        observers.post(Events.SEGMENT_RELEASED, allocator, device, address, byteSize, 0);
    }

    @Override
    public void freeDeferred(int device, long address, long byteSize) {
        observers.post(Events.FREE_DEFERRED, allocator, device, address, byteSize, 0);
    }

    @Override
    public void freeCompleted(int device, long address, long byteSize) {
        observers.post(Events.FREE_COMPLETED, allocator, device, address, byteSize, 0);
    }

    @Override
    public void pageMoved(int device, long formerAddress, long address, long byteSize) {
        observers.post(Events.PAGE_MOVED, allocator, device, formerAddress, address, byteSize);
    }

    @Override
    public void reservedChanged(int device, long change) {
        bytes.addAndGet(device, change);
        tells.setRelease(device, 1);
        Meter meter = meters.get(device);
        if (meter != null) {
            meter.moved();
        }
    }
}
