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
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
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
    private final Map<String, Series> byEventName = new ConcurrentHashMap<>();

    /// Guarded by this, like the field below.
    private final Map<Allocator, Series> byAllocator = new LinkedHashMap<>();

    private boolean ended;

    /// The tags of an allocator's series.
    private record Key(String name, String pool) {
        Tags tags() {
            return Tags.of("allocator", name, "pool", pool);
        }
    }

    /// The meters of an allocator. If it is gone and another one has its tags, they go on with that one: a
    /// scrape under way may find a meter twice that is removed and added again.
    private static final class Series {
        final Key key;
        final MeterGroup meters;
        private volatile Shown shown;

        /// @param earlier by device, the counts of the allocators before
        private record Shown(Allocator allocator, List<AllocatorStatistics> earlier) {
            AllocatorStatistics counted(int device) {
                return AllocatorStatistics.sum(List.of(earlier.get(device), allocator.statistics(device)));
            }
        }

        Series(Key key, MeterGroup meters, Allocator allocator, int deviceCount) {
            this.key = key;
            this.meters = meters;
            shown = new Shown(allocator, Collections.nCopies(deviceCount, AllocatorStatistics.sum(List.of())));
        }

        Allocator allocator() {
            return shown.allocator;
        }

        AllocatorStatistics counted(int device) {
            return shown.counted(device);
        }

        Series continuedWith(Allocator next) {
            Shown before = shown;
            shown = new Shown(
                    next,
                    IntStream.range(0, before.earlier.size())
                            .mapToObj(before::counted)
                            .toList());
            return this;
        }
    }

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
        Map<Key, Series> left = new HashMap<>();
        byAllocator.forEach((allocator, series) -> {
            if (!present.contains(allocator)) {
                byEventName.remove(allocator.toString(), series);
                left.put(series.key, series);
            }
        });
        byAllocator.keySet().retainAll(present);
        try {
            for (Allocator allocator : present) {
                Series series = byAllocator.get(allocator);
                if (series == null) {
                    Key key = freeKey(allocator);
                    Series former = left.remove(key);
                    series = former != null ? former.continuedWith(allocator) : newSeries(key, allocator);
                    byAllocator.put(allocator, series);
                }
                byEventName.putIfAbsent(allocator.toString(), series);
            }
        } finally {
            left.values().forEach(each -> each.meters.remove());
        }
    }

    private Series newSeries(Key key, Allocator allocator) {
        int deviceCount = memory.environment().deviceCount();
        Series series = new Series(key, ofMemory.with(key.tags()), allocator, deviceCount);
        try {
            addLimit(series);
            for (int device = 0; device < deviceCount; device++) {
                addGauges(series, device);
                addCounters(series, device);
                for (RefusalCause cause : RefusalCause.values()) {
                    EventMeters.refusals(series.meters, tagOf(device), cause);
                }
            }
            return series;
        } catch (Throwable failure) {
            series.meters.remove();
            throw failure;
        }
    }

    /// Returns the tags of an allocator: its spec, with a number added if another allocator of the pool has
    /// that name.
    private Key freeKey(Allocator allocator) {
        String pool = allocator instanceof MemoryPool its ? nameOf(its) : "none";
        Set<Key> taken = byAllocator.values().stream().map(each -> each.key).collect(Collectors.toSet());
        String spec = allocator.spec().toString();
        Key key = new Key(spec, pool);
        for (int suffix = 2; taken.contains(key); suffix++) {
            key = new Key(spec + "#" + suffix, pool);
        }
        return key;
    }

    private static String nameOf(MemoryPool pool) {
        return pool.tag().isEmpty() ? "untagged" : pool.tag(); // a pool's number would create ever more series
    }

    private static void addLimit(Series series) {
        series.meters.meter(
                Gauge.class,
                "cistern.memory.limit",
                Tags.empty(),
                (tags, registry) -> Gauge.builder("cistern.memory.limit", series, at -> limit(at.allocator()))
                        .description("The maximum requested bytes of the allocator's live blocks on all devices")
                        .baseUnit(BaseUnits.BYTES)
                        .tags(tags)
                        .register(registry));
    }

    private static double limit(Allocator allocator) {
        MemoryLimit limit = allocator.limit();
        return limit.isSet() ? limit.byteSize() : Double.NaN;
    }

    private static void addGauges(Series series, int device) {
        gauge(
                series,
                device,
                "cistern.memory.requested",
                "Bytes requested in live blocks",
                from(device, AllocatorStatistics::requestedBytes));
        gauge(
                series,
                device,
                "cistern.memory.requested.peak",
                "Peak of the bytes requested in live blocks",
                from(device, AllocatorStatistics::requestedPeakBytes));
        gauge(series, device, "cistern.memory.reserved", "Bytes reserved from the driver", at -> {
            var reserved = at.reservedBytes(device);
            return reserved.isPresent() ? reserved.getAsLong() : Double.NaN;
        });
        gauge(
                series,
                device,
                "cistern.memory.largest.free",
                "Bytes in the largest free block",
                at -> largestFree(at, device));
        gauge(
                series,
                device,
                "cistern.memory.stranded",
                "Idle or waiting bytes kept for the stream that used them",
                at -> stranded(at, device));
        series.meters.meter(
                Gauge.class,
                "cistern.blocks.live",
                tagOf(device),
                (tags, registry) -> Gauge.builder(
                                "cistern.blocks.live",
                                series,
                                at -> at.allocator().statistics(device).liveBlocks())
                        .description("Live blocks")
                        .tags(tags)
                        .register(registry));
    }

    private static void gauge(
            Series series, int device, String name, String description, ToDoubleFunction<Allocator> figure) {
        bytes(series.meters, device, name, description, series, at -> figure.applyAsDouble(at.allocator()));
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

    private static void addCounters(Series series, int device) {
        counter(
                series,
                device,
                "cistern.allocations",
                "Successful allocations",
                null,
                AllocatorStatistics::allocations);
        counter(series, device, "cistern.frees", "Frees", null, AllocatorStatistics::frees);
        counter(
                series,
                device,
                "cistern.memory.allocated",
                "Bytes requested so far",
                BaseUnits.BYTES,
                AllocatorStatistics::requestedTotalBytes);
    }

    private static void counter(
            Series series,
            int device,
            String name,
            String description,
            @Nullable String unit,
            ToDoubleFunction<AllocatorStatistics> figure) {
        series.meters.meter(
                FunctionCounter.class,
                name,
                tagOf(device),
                (tags, registry) -> FunctionCounter.builder(
                                name, series, at -> figure.applyAsDouble(at.counted(device)))
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
        Series found = byEventName.get(eventName);
        return found == null ? null : found.meters;
    }

    synchronized void end() {
        ended = true;
        ofMemory.remove();
        byAllocator.values().forEach(each -> each.meters.remove());
        byAllocator.clear();
        byEventName.clear();
        MemoryNumbers.giveBack(registry, number);
    }
}
