package io.cistern.micrometer;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.MemoryEvent.OutOfMemory.RefusalCause;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Counts and times the rare events of a device memory. The meters of an allocator's events end with its
/// other meters.
///
/// **Threads.** Any.
final class EventMeters implements Consumer<MemoryEvent> {
    private final BoundMeters bound;
    private final long slowNanos;

    EventMeters(BoundMeters bound, long slowNanos) {
        this.bound = bound;
        this.slowNanos = slowNanos;
    }

    @Override
    public void accept(MemoryEvent told) {
        switch (told) {
            case MemoryEvent.Allocated block -> {
                if (block.nanos() >= slowNanos) {
                    time(
                            bound.of(block.allocator()),
                            "cistern.allocation.slow",
                            "Slow allocations",
                            device(block),
                            block.nanos());
                }
            }
            case MemoryEvent.Trimmed trim ->
                time(bound.of(trim.allocator()), "cistern.trims", "Trims", device(trim), trim.nanos());
            case MemoryEvent.Reclaimed reclaim ->
                time(
                        bound.ofMemory(),
                        "cistern.reclaims",
                        "Steps that made memory available after a request had failed",
                        device(reclaim).and("step", reclaim.step().step().name().toLowerCase(Locale.ROOT)),
                        reclaim.step().nanos());
            case MemoryEvent.OutOfMemory refusal -> count(refusal);
            default -> {}
        }
    }

    private static Tags device(MemoryEvent event) {
        return BoundMeters.tagOf(event.device());
    }

    /// @param group null if the allocator is gone
    private static void time(@Nullable MeterGroup group, String name, String description, Tags more, long nanos) {
        Timer timer = group == null
                ? null
                : group.meter(
                        Timer.class,
                        name,
                        more,
                        (tags, registry) -> Timer.builder(name)
                                .description(description)
                                .tags(tags)
                                .register(registry));
        if (timer != null) {
            timer.record(nanos, TimeUnit.NANOSECONDS);
        }
    }

    private void count(MemoryEvent.OutOfMemory refusal) {
        List<OutOfMemoryReport.AllocatorMemory> allocators = refusal.report().allocators();
        if (allocators.isEmpty()) {
            count(bound.ofMemory(), device(refusal).and("allocator", "none", "pool", "none"), refusal);
        } else {
            count(bound.of(allocators.getFirst().name()), device(refusal), refusal);
        }
    }

    private static void count(@Nullable MeterGroup group, Tags more, MemoryEvent.OutOfMemory refusal) {
        Counter counter = group == null ? null : refusals(group, more, refusal.cause());
        if (counter != null) {
            counter.increment();
        }
    }

    /// Adds the counter of refused requests: an alert detects the first one only if the counter existed
    /// before.
    static @Nullable Counter refusals(MeterGroup group, Tags more, RefusalCause cause) {
        return group.meter(
                Counter.class,
                "cistern.out.of.memory",
                more.and("cause", cause.name().toLowerCase(Locale.ROOT)),
                (tags, registry) -> Counter.builder("cistern.out.of.memory")
                        .description("Requests that failed: memory or a limit was exhausted, or they can never fit")
                        .tags(tags)
                        .register(registry));
    }
}
