package io.cistern.observability.jfr;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.observability.MemoryFigures;
import java.util.concurrent.atomic.AtomicInteger;
import jdk.jfr.FlightRecorder;
import jdk.jfr.FlightRecorderListener;
import jdk.jfr.Recording;
import jdk.jfr.RecordingState;
import org.jspecify.annotations.Nullable;

/// Observes one device memory while the writer has users and a recording runs.
///
/// **Threads.** Any.
final class FlightWriter implements AutoCloseable, FlightRecorderListener {
    private final DeviceMemory memory;
    private final Runnable devices = this::writeDevices;
    private final Runnable allocators = this::writeAllocators;

    /// Guarded by this.
    private int users;

    /// Guarded by this.
    private boolean closed;

    /// Guarded by this. Null while no recording runs.
    private @Nullable Registration observing;

    private final AtomicInteger changes = new AtomicInteger();

    FlightWriter(DeviceMemory memory) {
        this.memory = memory;
    }

    void use() {
        boolean first;
        synchronized (this) {
            first = users++ == 0 && !closed;
        }
        if (first) {
            FlightRecorder.addListener(this);
            FlightRecorder.addPeriodicEvent(EventTypes.DeviceStatistics.class, devices);
            FlightRecorder.addPeriodicEvent(EventTypes.AllocatorStatistics.class, allocators);
            follow();
        }
    }

    void release() {
        boolean last;
        synchronized (this) {
            last = --users == 0 && !closed;
        }
        if (last) {
            end();
        }
    }

    private void end() {
        FlightRecorder.removeListener(this);
        FlightRecorder.removePeriodicEvent(devices);
        FlightRecorder.removePeriodicEvent(allocators);
        follow();
    }

    /// Records leaks when the device memory closes, because its live blocks will never be freed.
    @Override
    public void close() {
        boolean used;
        synchronized (this) {
            used = users > 0 && !closed;
            closed = true;
        }
        if (used) {
            FlightEvents.recordLeaks(memory);
            end();
        }
    }

    @Override
    public void recordingStateChanged(Recording recording) {
        follow();
    }

    /// Starts or stops observing as recordings start and stop. Queries the recorder without holding our
    /// lock, because the recorder may call us under its own. The answer may be outdated by the time this
    /// thread acts on it, so the query is repeated after another change.
    private void follow() {
        int seen;
        do {
            seen = changes.incrementAndGet();
            observe(isRecording());
        } while (changes.get() != seen);
    }

    private static boolean isRecording() {
        return FlightRecorder.isInitialized()
                && FlightRecorder.getFlightRecorder().getRecordings().stream()
                        .anyMatch(recording -> recording.getState() == RecordingState.RUNNING);
    }

    private synchronized void observe(boolean isRecording) {
        boolean wanted = isRecording && users > 0 && !closed;
        if (wanted && observing == null) {
            observing = memory.listeners().onEvent(new EventWriter());
        } else if (!wanted && observing != null) {
            observing.close();
            observing = null;
        }
    }

    private void writeDevices() {
        for (MemoryFigures.OfDevice device : MemoryFigures.of(memory).devices()) {
            EventTypes.DeviceStatistics event = new EventTypes.DeviceStatistics();
            event.device = device.device();
            event.name = device.name();
            event.totalBytes = device.totalBytes();
            event.freeBytes = known(device.freeBytes());
            for (MemoryFigures.OfAllocator allocator : device.allocators()) {
                event.reservedBytes += Math.max(allocator.reservedBytes(), 0);
                event.requestedBytes += allocator.requestedBytes();
                event.liveBlocks += allocator.liveBlocks();
            }
            event.commit();
        }
    }

    private void writeAllocators() {
        for (MemoryFigures.OfDevice device : MemoryFigures.of(memory).devices()) {
            for (MemoryFigures.OfAllocator allocator : device.allocators()) {
                EventTypes.AllocatorStatistics event = new EventTypes.AllocatorStatistics();
                event.device = device.device();
                event.allocator = allocator.name();
                event.pool = allocator.pool();
                event.requestedBytes = allocator.requestedBytes();
                event.requestedPeakBytes = allocator.requestedPeakBytes();
                event.reservedBytes = known(allocator.reservedBytes());
                event.largestFreeBytes = known(allocator.largestFreeBytes());
                event.strandedBytes = known(allocator.strandedBytes());
                event.liveBlocks = allocator.liveBlocks();
                event.allocations = allocator.allocations();
                event.frees = allocator.frees();
                event.commit();
            }
        }
    }

    private static long known(long figure) {
        return figure == MemoryFigures.UNKNOWN ? Long.MIN_VALUE : figure;
    }
}
