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
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/// Records the last [events][MemoryEvent] of one [DeviceMemory] for [snapshots][MemorySnapshot]:
/// allocations and frees, memory obtained from the driver, trims, changes of the current allocator, scopes,
/// refusals, and the program's [annotations][io.cistern.Listeners#annotate]. It works with every allocator.
///
/// ```java
/// MemoryHistory history = MemoryHistory.of(memory);
/// history.start(HistoryOptions.withStacks());
/// …
/// MemorySnapshot.take(memory).write(Path.of("now.json"));
/// ```
///
/// Each device has its own ring of events, and one more ring holds events that belong to no single device.
/// While the history is off, it costs nothing.
///
/// **Threads.** Any thread may call any method at any time. An event is recorded on the thread that caused it.
public final class MemoryHistory implements AutoCloseable {
    private final DeviceMemory memory;

    /// The text of each thread that has set one.
    @SuppressWarnings("ThreadLocalUsage") // each device memory has a history of its own
    private final ThreadLocal<@Nullable String> texts = new ThreadLocal<>();

    /// Null before the first start.
    private volatile @Nullable Recording recording;

    /// Guarded by this.
    private @Nullable Registration registration;

    /// The events and options of one recording, from [MemoryHistory#start].
    private static final class Recording {
        final HistoryOptions options;
        final Instant startedAt = Instant.now();
        final long startNanos = System.nanoTime();
        final Ring[] rings;
        final Listeners listeners;

        /// Events that the listeners had lost before the recording started.
        final long lostBefore;

        final AtomicLong unrecorded = new AtomicLong();

        final ThreadLocal<@Nullable String> texts;

        Recording(HistoryOptions options, int deviceCount, Listeners listeners, ThreadLocal<@Nullable String> texts) {
            this.options = options;
            this.texts = texts;
            this.listeners = listeners;
            this.lostBefore = listeners.lostEvents();
            this.rings = new Ring[deviceCount + 1];
            for (int i = 0; i < rings.length; i++) {
                rings[i] = new Ring(options.capacity());
            }
        }

        /// Records an event. If the Java heap is full, the event is lost and counted.
        void add(MemoryEvent event) {
            try {
                record(event);
            } catch (OutOfMemoryError full) {
                unrecorded.incrementAndGet();
                throw full;
            }
        }

        private void record(MemoryEvent event) {
            if (!options.records(event)) {
                return;
            }
            CallStack stack = options.recordsStackOf(event) ? new CallStack(HistoryEntry.MAX_FRAMES) : null;
            int device = event.device();
            Ring ring = rings[device < 0 ? rings.length - 1 : device];
            long nanos = event instanceof MemoryEvent.Allocated block ? block.endNanos() : System.nanoTime();
            ring.add(new HistoryEntry(nanos, Thread.currentThread(), event, stack, texts.get()));
        }

        long lost() {
            long lost = unrecorded.get() + listeners.lostEvents() - lostBefore;
            for (Ring ring : rings) {
                lost += ring.lost();
            }
            return lost;
        }
    }

    private MemoryHistory(DeviceMemory memory) {
        this.memory = memory;
    }

    /// Returns the history of a device memory. It is off at first.
    public static MemoryHistory of(DeviceMemory memory) {
        return memory.moduleSupport().attachment(MemoryHistory.class, MemoryHistory::new);
    }

    /// Starts to record, and discards everything recorded before.
    public synchronized void start(HistoryOptions options) {
        var next = new Recording(options, memory.environment().deviceCount(), memory.listeners(), texts);
        stop();
        recording = next;
        registration = memory.listeners().onEvent(next::add);
    }

    /// Sets a text for the calling thread, such as the number of a request. It is recorded with each event
    /// that the thread causes from now on, and appears as `user_metadata` in a snapshot in PyTorch's
    /// format.
    ///
    /// @param text empty for none
    public void text(String text) {
        if (text.isEmpty()) {
            texts.remove();
        } else {
            texts.set(text);
        }
    }

    /// Stops recording and keeps the events recorded so far.
    public synchronized void stop() {
        if (registration != null) {
            registration.close();
            registration = null;
        }
    }

    /// Returns whether the history is recording.
    public synchronized boolean isOn() {
        return registration != null;
    }

    /// Returns the options of the present or last recording; empty before the first start.
    public Optional<HistoryOptions> options() {
        Recording last = recording;
        return last == null ? Optional.empty() : Optional.of(last.options);
    }

    /// Returns the time of the last start.
    ///
    /// @throws IllegalStateException if the history was never started
    public Instant startedAt() {
        return required().startedAt;
    }

    /// Returns the time of the last start on the clock of [System#nanoTime].
    ///
    /// @throws IllegalStateException if the history was never started
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

    /// Returns the kept events of all devices, oldest first.
    public List<HistoryEntry> entries() {
        Recording last = recording;
        List<HistoryEntry> all = new ArrayList<>();
        if (last != null) {
            for (Ring ring : last.rings) {
                all.addAll(ring.entries());
            }
            all.sort(Comparator.comparingLong(entry -> entry.nanos() - last.startNanos));
        }
        return all;
    }

    /// Returns how many events since the last start were lost: because later events replaced them, or
    /// because the Java heap was full.
    public long lost() {
        Recording last = recording;
        return last == null ? 0 : last.lost();
    }

    /// Stops recording. The device memory calls this when it closes.
    @Override
    public void close() {
        stop();
    }

    /// Keeps the last events of one device, or of no single device. A new event replaces the oldest.
    ///
    /// **Threads.** Any; a writer claims a place with one atomic instruction and never waits.
    private static final class Ring {
        private final AtomicReferenceArray<HistoryEntry> places;
        private final AtomicLong count = new AtomicLong();

        /// @param capacity a power of two
        Ring(int capacity) {
            places = new AtomicReferenceArray<>(capacity);
        }

        void add(HistoryEntry entry) {
            int place = (int) count.getAndIncrement() & (places.length() - 1);
            places.setRelease(place, entry);
        }

        long lost() {
            return Math.max(0, count.get() - places.length());
        }

        /// Returns the entries that are kept, in no particular order.
        List<HistoryEntry> entries() {
            List<HistoryEntry> all = new ArrayList<>();
            for (int place = 0; place < places.length(); place++) {
                HistoryEntry entry = places.getAcquire(place);
                if (entry != null) {
                    all.add(entry);
                }
            }
            return all;
        }
    }
}
