package io.cistern.micrometer;

import io.cistern.Allocator;
import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.diagnostics.MemoryEvent.OutOfMemory.RefusalCause;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.BaseUnits;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/// Keeps the meters of one device memory in one registry.
///
/// **Threads.** Any.
final class BoundMeters {
    private static final String LARGEST_FREE = "largest_free_block";
    private static final String STRANDED = "stranded_bytes.";

    private final DeviceMemory memory;
    private final MeterRegistry registry;
    private final int number;
    private final MeterGroup ofMemory;

    /// By the allocator's name in events; if several share it, the first.
    private final Map<String, OfAllocator> byEventName = new ConcurrentHashMap<>();

    /// Guarded by this, like the field below.
    private final Map<Allocator, OfAllocator> byAllocator = new LinkedHashMap<>();

    private boolean ended;

    private record OfAllocator(String name, String pool, MeterGroup meters) {}

    BoundMeters(DeviceMemory memory, MeterRegistry registry) {
        this.memory = memory;
        this.registry = registry;
        number = MemoryNumbers.take(registry);
        ofMemory = new MeterGroup(registry, Tags.of("memory", Integer.toString(number)));
    }

    synchronized void begin() {
        ofMemory.meter(
                Gauge.class,
                "cistern.allocators",
                Tags.empty(),
                (tags, to) -> Gauge.builder("cistern.allocators", this, BoundMeters::countAndFollow)
                        .description("Allocators that are open or have live blocks")
                        .strongReference(true)
                        .tags(tags)
                        .register(to));
        for (int device = 0; device < memory.environment().deviceCount(); device++) {
            addDevice(device);
        }
        follow();
    }

    private void addDevice(int device) {
        bytes(
                ofMemory,
                device,
                "cistern.device.memory.total",
                "Memory of the device",
                memory,
                at -> at.driver().devices().totalBytes(device));
        bytes(
                ofMemory,
                device,
                "cistern.device.memory.limit",
                "The maximum requested bytes of all live blocks: the device's limit, or all its memory",
                memory,
                at -> Math.min(
                        at.limits().device(device).byteSize(),
                        at.driver().devices().totalBytes(device)));
        bytes(
                ofMemory,
                device,
                "cistern.device.memory.free",
                "Memory of the device that no process uses, as the driver reports it",
                memory,
                at -> freeBytes(at, device));
        bytes(
                ofMemory,
                device,
                "cistern.memory.dropped",
                "Bytes of buffers that were dropped without close",
                memory,
                at -> droppedBytes(at, device));
    }

    private static <T> void bytes(
            MeterGroup group, int device, String name, String description, T of, ToDoubleFunction<T> figure) {
        group.meter(
                Gauge.class,
                name,
                tagOf(device),
                (tags, registry) -> Gauge.builder(name, of, figure)
                        .description(description)
                        .baseUnit(BaseUnits.BYTES)
                        .tags(tags)
                        .register(registry));
    }

    static Tags tagOf(int device) {
        return Tags.of("device", Integer.toString(device));
    }

    /// Returns NaN for a device that this process does not use, because a query would take memory there.
    private static double freeBytes(DeviceMemory memory, int device) {
        return memory.driver().devices().isUsed(device)
                ? memory.driver().memory().info(device).freeBytes()
                : Double.NaN;
    }

    /// Returns NaN at the leak levels that do not track buffers.
    private static double droppedBytes(DeviceMemory memory, int device) {
        return memory.moduleSupport().leakLevel().compareTo(LeakLevel.SITES) < 0
                ? Double.NaN
                : memory.moduleSupport().droppedBytes(device);
    }

    private double countAndFollow() {
        follow();
        return memory.allocators().size();
    }

    /// Adds the meters of new allocators and removes those of closed allocators without live blocks.
    private synchronized void follow() {
        if (ended) {
            return;
        }
        List<Allocator> present = memory.allocators();
        byAllocator.forEach((allocator, of) -> {
            if (!present.contains(allocator)) {
                byEventName.remove(allocator.toString(), of);
                of.meters().remove();
            }
        });
        byAllocator.keySet().retainAll(present);
        for (Allocator allocator : present) {
            byEventName.putIfAbsent(allocator.toString(), byAllocator.computeIfAbsent(allocator, this::metersOf));
        }
    }

    private OfAllocator metersOf(Allocator allocator) {
        String pool = allocator instanceof MemoryPool its ? nameOf(its) : "none";
        String name = freeName(allocator.spec().toString(), pool);
        MeterGroup meters = ofMemory.with(Tags.of("allocator", name, "pool", pool));
        try {
            addLimit(meters, allocator);
            for (int device = 0; device < memory.environment().deviceCount(); device++) {
                addGauges(meters, allocator, device);
                addCounters(meters, allocator, device);
                for (RefusalCause cause : RefusalCause.values()) {
                    EventMeters.refusals(meters, tagOf(device), cause);
                }
            }
            return new OfAllocator(name, pool, meters);
        } catch (Throwable failure) {
            meters.remove();
            throw failure;
        }
    }

    /// Returns the spec, with a number added if another allocator of the pool has that name.
    private String freeName(String spec, String pool) {
        Set<String> taken = new HashSet<>();
        byAllocator.values().stream().filter(each -> each.pool.equals(pool)).forEach(each -> taken.add(each.name));
        String name = spec;
        for (int suffix = 2; taken.contains(name); suffix++) {
            name = spec + "#" + suffix;
        }
        return name;
    }

    private static String nameOf(MemoryPool pool) {
        return pool.tag().isEmpty() ? "untagged" : pool.tag(); // a pool's number would create ever more series
    }

    private static void addLimit(MeterGroup group, Allocator allocator) {
        group.meter(
                Gauge.class,
                "cistern.memory.limit",
                Tags.empty(),
                (tags, registry) -> Gauge.builder("cistern.memory.limit", allocator, BoundMeters::limit)
                        .description("The maximum requested bytes of the allocator's live blocks on all devices")
                        .baseUnit(BaseUnits.BYTES)
                        .tags(tags)
                        .register(registry));
    }

    private static double limit(Allocator allocator) {
        MemoryLimit limit = allocator.limit();
        return limit.isSet() ? limit.byteSize() : Double.NaN;
    }

    private static void addGauges(MeterGroup group, Allocator allocator, int device) {
        bytes(
                group,
                device,
                "cistern.memory.requested",
                "Bytes requested in live blocks",
                allocator,
                from(device, AllocatorStatistics::requestedBytes));
        bytes(
                group,
                device,
                "cistern.memory.requested.peak",
                "Peak of the bytes requested in live blocks",
                allocator,
                from(device, AllocatorStatistics::requestedPeakBytes));
        bytes(group, device, "cistern.memory.reserved", "Bytes reserved from the driver", allocator, at -> {
            var reserved = at.reservedBytes(device);
            return reserved.isPresent() ? reserved.getAsLong() : Double.NaN;
        });
        bytes(
                group,
                device,
                "cistern.memory.largest.free",
                "Bytes in the largest free block",
                allocator,
                at -> largestFree(at, device));
        bytes(
                group,
                device,
                "cistern.memory.stranded",
                "Idle or waiting bytes kept for the stream that used them",
                allocator,
                at -> stranded(at, device));
        group.meter(
                Gauge.class,
                "cistern.blocks.live",
                tagOf(device),
                (tags, registry) -> Gauge.builder(
                                "cistern.blocks.live", allocator, from(device, AllocatorStatistics::liveBlocks))
                        .description("Live blocks")
                        .tags(tags)
                        .register(registry));
    }

    private static ToDoubleFunction<Allocator> from(int device, ToDoubleFunction<AllocatorStatistics> figure) {
        return allocator -> figure.applyAsDouble(allocator.statistics(device));
    }

    private static double largestFree(Allocator allocator, int device) {
        Long largest = allocator.memoryStatistics(device).get(LARGEST_FREE);
        return largest == null ? Double.NaN : largest;
    }

    private static double stranded(Allocator allocator, int device) {
        Map<String, Long> figures = allocator.memoryStatistics(device);
        return figures.containsKey(LARGEST_FREE)
                ? figures.entrySet().stream()
                        .filter(entry -> entry.getKey().startsWith(STRANDED))
                        .mapToLong(Map.Entry::getValue)
                        .sum()
                : Double.NaN;
    }

    private static void addCounters(MeterGroup group, Allocator allocator, int device) {
        counter(
                group,
                device,
                "cistern.allocations",
                "Successful allocations",
                null,
                allocator,
                AllocatorStatistics::allocations);
        counter(group, device, "cistern.frees", "Frees", null, allocator, AllocatorStatistics::frees);
        counter(
                group,
                device,
                "cistern.memory.allocated",
                "Bytes requested so far",
                BaseUnits.BYTES,
                allocator,
                AllocatorStatistics::requestedTotalBytes);
    }

    private static void counter(
            MeterGroup group,
            int device,
            String name,
            String description,
            @Nullable String unit,
            Allocator allocator,
            ToDoubleFunction<AllocatorStatistics> figure) {
        group.meter(
                FunctionCounter.class,
                name,
                tagOf(device),
                (tags, registry) -> FunctionCounter.builder(name, allocator, from(device, figure))
                        .description(description)
                        .baseUnit(unit)
                        .tags(tags)
                        .register(registry));
    }

    /// Returns the meters of the device memory itself.
    MeterGroup ofMemory() {
        return ofMemory;
    }

    /// Returns the meters of the allocator that an event names; null if it is gone.
    @Nullable
    MeterGroup of(String eventName) {
        if (!byEventName.containsKey(eventName)) {
            follow();
        }
        OfAllocator found = byEventName.get(eventName);
        return found == null ? null : found.meters();
    }

    synchronized void end() {
        ended = true;
        ofMemory.remove();
        byAllocator.values().forEach(each -> each.meters().remove());
        byAllocator.clear();
        byEventName.clear();
        MemoryNumbers.giveBack(registry, number);
    }
}
