package io.cistern.observability;

import io.cistern.DeviceMemory;
import io.cistern.Listeners;
import io.cistern.Registration;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.internal.names.CallStack;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// The last [events][MemoryEvent] of one [DeviceMemory], kept for [snapshots][MemorySnapshot]: who allocated
/// and freed what, what the allocators obtained from the driver, trims, swaps, scopes, refusals, and what the
/// program [annotated][io.cistern.Listeners#annotate]. It works for every allocator.
///
/// ```java
/// MemoryHistory history = MemoryHistory.of(memory);
/// history.start(HistoryOptions.withStacks());
/// …
/// MemorySnapshot.take(memory).write(Path.of("now.json"));
/// ```
///
/// Each device has a ring of its own, and one more is for events of no device. Off, it costs nothing.
///
/// **Threads.** Any thread may call any method at any time. Events come on the thread that caused them.
public final class MemoryHistory implements AutoCloseable {
    private final DeviceMemory memory;

    /// Null before the first start.
    private volatile @Nullable Recording recording;

    /// Guarded by this.
    private @Nullable Registration registration;

    /// What one start records.
    private static final class Recording {
        final HistoryOptions options;
        final Instant startedAt = Instant.now();
        final long startNanos = System.nanoTime();
        final HistoryRing[] rings;
        final Listeners listeners;

        /// Events lost before this started.
        final long lostBefore;

        /// Those that came and could not be recorded.
        final AtomicLong unrecorded = new AtomicLong();

        Recording(HistoryOptions options, int deviceCount, Listeners listeners) {
            this.options = options;
            this.listeners = listeners;
            this.lostBefore = listeners.lostEvents();
            this.rings = new HistoryRing[deviceCount + 1];
            for (int i = 0; i < rings.length; i++) {
                rings[i] = new HistoryRing(options.capacity());
            }
        }

        /// In a full Java heap the event is lost, and counted.
        void add(MemoryEvent event) {
            try {
                record(event);
            } catch (OutOfMemoryError full) {
                unrecorded.incrementAndGet();
                throw full;
            }
        }

        private void record(MemoryEvent event) {
            CallStack stack = options.stacks() ? new CallStack() : null;
            int device = event.device();
            HistoryRing ring = rings[device < 0 ? rings.length - 1 : device];
            long nanos = event instanceof MemoryEvent.Allocated block ? block.endNanos() : System.nanoTime();
            ring.add(new HistoryEntry(nanos, Thread.currentThread(), event, stack));
        }

        long lost() {
            long lost = unrecorded.get() + listeners.lostEvents() - lostBefore;
            for (HistoryRing ring : rings) {
                lost += ring.lost();
            }
            return lost;
        }
    }

    private MemoryHistory(DeviceMemory memory) {
        this.memory = memory;
    }

    /// Returns the history of a device memory, which is off at first.
    public static MemoryHistory of(DeviceMemory memory) {
        return memory.moduleSupport().attachment(MemoryHistory.class, MemoryHistory::new);
    }

    /// Starts to record. What was recorded before is forgotten.
    public synchronized void start(HistoryOptions options) {
        var next = new Recording(options, memory.environment().deviceCount(), memory.listeners());
        stop();
        recording = next;
        registration = memory.listeners().onEvent(next::add);
    }

    /// Stops to record. What was recorded stays.
    public synchronized void stop() {
        if (registration != null) {
            registration.close();
            registration = null;
        }
    }

    /// Returns whether it records.
    public synchronized boolean isOn() {
        return registration != null;
    }

    /// Returns how it records, or did last; empty before the first start.
    public Optional<HistoryOptions> options() {
        Recording last = recording;
        return last == null ? Optional.empty() : Optional.of(last.options);
    }

    /// Returns when it was started last.
    ///
    /// @throws IllegalStateException if it never was
    public Instant startedAt() {
        return required().startedAt;
    }

    /// Returns the same moment as [System#nanoTime] tells the time.
    ///
    /// @throws IllegalStateException if it was never started
    public long startNanos() {
        return required().startNanos;
    }

    private Recording required() {
        Recording last = recording;
        if (last == null) {
            throw new IllegalStateException("the history was never started");
        }
        return last;
    }

    /// Returns the events that are kept, of all devices, the oldest first.
    public List<HistoryEntry> entries() {
        Recording last = recording;
        List<HistoryEntry> all = new ArrayList<>();
        if (last != null) {
            for (HistoryRing ring : last.rings) {
                all.addAll(ring.entries());
            }
            all.sort(Comparator.comparingLong(entry -> entry.nanos() - last.startNanos));
        }
        return all;
    }

    /// Returns how many events since the last start are not kept: later ones took their places, or the Java heap
    /// was full.
    public long lost() {
        Recording last = recording;
        return last == null ? 0 : last.lost();
    }

    /// Stops to record, with the device memory.
    @Override
    public void close() {
        stop();
    }
}
