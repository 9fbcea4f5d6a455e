package io.cistern.micrometer;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

/// Publishes meters of a [DeviceMemory] to Micrometer, and through it to Prometheus, OpenTelemetry and others.
///
/// ```java
/// DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory);
/// metrics.bindTo(registry);
/// ```
///
/// | meter | value | tags |
/// |---|---|---|
/// | `cistern.device.memory.total`, `.free` | bytes of the device, as the driver reports | `memory`, `device` |
/// | `cistern.device.memory.limit` | the most bytes that may be requested: the device's limit, or its total | same |
/// | `cistern.memory.dropped` | bytes of buffers dropped without close; NaN unless leaks are `sites` or `all` | same |
/// | `cistern.memory.requested`, `.requested.peak` | bytes of live blocks | also `allocator`, `pool` |
/// | `cistern.memory.reserved` | bytes held from the driver | same |
/// | `cistern.memory.largest.free` | bytes of the largest free block | same |
/// | `cistern.memory.stranded` | idle or waiting bytes kept for the stream that used them | same |
/// | `cistern.memory.allocated` | bytes requested so far, a counter | same |
/// | `cistern.blocks.live` | live blocks | same |
/// | `cistern.allocations`, `cistern.frees` | counters | same |
/// | `cistern.allocators` | allocators that are open or have live blocks | `memory` |
/// | `cistern.memory.limit` | the allocator's limit for all devices; NaN without one | `memory`, `allocator`, `pool` |
/// | `cistern.out.of.memory` | failed requests, a counter | `memory`, `device`, `allocator`, `pool`, `cause` |
/// | `cistern.reclaims` | a timer of reclaim steps | `memory`, `device`, `step` |
/// | `cistern.trims` | a timer of requested trims | `memory`, `device`, `allocator`, `pool` |
/// | `cistern.allocation.slow` | a timer of [slow allocations][#withSlowAllocations] | same |
///
/// The tags:
///
/// - `memory` numbers the device memories of a registry from 1, in the order in which they were bound. The
///   number of a closed device memory is reused.
/// - `allocator` is the allocator's spec, or its name if it was opened without a spec. A second allocator
///   of the same spec is `caching#2`; events that name only the spec count for the first.
/// - `pool` is the pool's tag, `untagged` for a pool without one, and `none` for an allocator that is not a
///   pool.
/// - `cause` is `too_large` for a request that can
///   [never fit][io.cistern.errors.DeviceOutOfMemoryException#canNeverFit], else `limit` if a limit had no room
///   for it, else `memory`.
///
/// `cistern.device.memory.free` is NaN until this process uses the device. A value that an allocator can't
/// report is NaN. Reading `cistern.allocators`, as each export does, adds the meters of new allocators and
/// removes those of allocators that are gone. A new allocator continues the series of one that is gone, if
/// both have the same tags.
///
/// **Threads.** Any thread may call any method at any time.
public final class DeviceMemoryMetrics implements MeterBinder, AutoCloseable {
    private static final long NEVER = Long.MAX_VALUE;

    private final DeviceMemory memory;
    private final long slowNanos;
    private final List<Registration> bindings = new CopyOnWriteArrayList<>();

    private DeviceMemoryMetrics(DeviceMemory memory, long slowNanos) {
        this.memory = memory;
        this.slowNanos = slowNanos;
    }

    /// Returns all meters except that of slow allocations. These meters cost an allocation almost
    /// nothing.
    public static DeviceMemoryMetrics of(DeviceMemory memory) {
        return new DeviceMemoryMetrics(memory, NEVER);
    }

    /// Returns all meters, including the timer of slow allocations. Every allocation and free is then
    /// [observed][io.cistern.Listeners#onEvent], which makes each of them slower.
    ///
    /// @param slow the minimum duration of a slow allocation, such as 1 ms; 0 times every allocation
    /// @throws IllegalArgumentException if `slow` is negative
    public static DeviceMemoryMetrics withSlowAllocations(DeviceMemory memory, Duration slow) {
        if (slow.isNegative()) {
            throw new IllegalArgumentException("slow is negative: " + slow);
        }
        return new DeviceMemoryMetrics(memory, TimeUnit.NANOSECONDS.convert(slow));
    }

    /// Adds the meters to a registry.
    @Override
    public void bindTo(MeterRegistry registry) {
        BoundMeters meters = new BoundMeters(memory, registry);
        try {
            meters.begin();
        } catch (Throwable failure) {
            meters.end();
            throw failure;
        }
        EventMeters events = new EventMeters(meters, slowNanos);
        Registration observing = slowNanos == NEVER
                ? memory.listeners().onRareEvent(events)
                : memory.listeners().onEvent(events);
        Bindings ofMemory = memory.moduleSupport().attachment(Bindings.class, _ -> new Bindings());
        bindings.add(ofMemory.add(() -> {
            observing.close();
            meters.end();
        }));
    }

    /// Removes these meters from the registries; [DeviceMemory#close] does the same.
    @Override
    public void close() {
        bindings.forEach(Registration::close);
        bindings.clear();
    }
}
