package io.cistern.micrometer;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/// Counts and times the rare events of a device memory. It looks up the meter by name and tags at each event.
///
/// **Threads.** Any.
final class EventMeters implements Consumer<MemoryEvent> {
    private static final String DEVICE = "device";
    private static final String ALLOCATOR = "allocator";

    private final MeterRegistry registry;
    private final long slowNanos;
    private final Set<Meter> registered = ConcurrentHashMap.newKeySet();

    EventMeters(MeterRegistry registry, long slowNanos) {
        this.registry = registry;
        this.slowNanos = slowNanos;
    }

    @Override
    public void accept(MemoryEvent told) {
        switch (told) {
            case MemoryEvent.Allocated block -> {
                if (block.nanos() >= slowNanos) {
                    time("cistern.allocation.slow", block.device(), ALLOCATOR, block.allocator(), block.nanos());
                }
            }
            case MemoryEvent.Trimmed trim ->
                time("cistern.trims", trim.device(), ALLOCATOR, trim.allocator(), trim.nanos());
            case MemoryEvent.Reclaimed reclaim ->
                time(
                        "cistern.reclaims",
                        reclaim.device(),
                        "step",
                        reclaim.step().step().name().toLowerCase(Locale.ROOT),
                        reclaim.step().nanos());
            case MemoryEvent.OutOfMemory refusal -> count(refusal.report());
            default -> {}
        }
    }

    private void time(String name, int device, String key, String value, long nanos) {
        Timer timer = Timer.builder(name)
                .tag(DEVICE, Integer.toString(device))
                .tag(key, value)
                .register(registry);
        registered.add(timer);
        timer.record(nanos, TimeUnit.NANOSECONDS);
    }

    private void count(OutOfMemoryReport report) {
        List<OutOfMemoryReport.AllocatorMemory> allocators = report.allocators();
        Counter counter = Counter.builder("cistern.out.of.memory")
                .description("Requests that failed: there was no memory for them, or a limit refused them")
                .tag(DEVICE, Integer.toString(report.device()))
                .tag(
                        ALLOCATOR,
                        allocators.isEmpty() ? "none" : allocators.getFirst().name())
                .register(registry);
        registered.add(counter);
        counter.increment();
    }

    /// Removes the meters. Call it after the last event.
    void end() {
        registered.forEach(registry::remove);
    }
}
