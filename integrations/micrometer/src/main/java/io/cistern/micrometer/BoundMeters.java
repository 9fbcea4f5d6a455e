package io.cistern.micrometer;

import io.cistern.Allocator;
import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.BaseUnits;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.ToDoubleFunction;

/// Keeps the meters of one device memory in one registry.
///
/// **Threads.** Any.
final class BoundMeters {
    private static final String LARGEST_FREE = "largest_free_block";
    private static final String STRANDED = "stranded_bytes.";

    private final DeviceMemory memory;
    private final MeterRegistry registry;
    private final List<Meter> ofAll = new ArrayList<>();

    /// Guarded by this, like the fields below.
    private final Map<Allocator, OfAllocator> byAllocator = new LinkedHashMap<>();

    private boolean ended;

    private record OfAllocator(String name, String pool, List<Meter> meters) {}

    BoundMeters(DeviceMemory memory, MeterRegistry registry) {
        this.memory = memory;
        this.registry = registry;
    }

    synchronized void begin() {
        ofAll.add(Gauge.builder("cistern.allocators", this, BoundMeters::countAndFollow)
                .description("Allocators that are open or have live blocks")
                .strongReference(true)
                .register(registry));
        for (int device = 0; device < memory.environment().deviceCount(); device++) {
            addDevice(device);
        }
        follow();
    }

    private void addDevice(int device) {
        Tags tags = Tags.of("device", Integer.toString(device));
        ofAll.add(Gauge.builder(
                        "cistern.device.memory.total",
                        memory,
                        at -> at.driver().devices().totalBytes(device))
                .description("Memory of the device")
                .baseUnit(BaseUnits.BYTES)
                .tags(tags)
                .register(registry));
        ofAll.add(Gauge.builder("cistern.device.memory.free", memory, at -> freeBytes(at, device))
                .description("Memory of the device that no process uses, as the driver says")
                .baseUnit(BaseUnits.BYTES)
                .tags(tags)
                .register(registry));
    }

    /// Returns NaN for a device that this process does not use, because asking would cost memory there.
    private static double freeBytes(DeviceMemory memory, int device) {
        return memory.driver().devices().isUsed(device)
                ? memory.driver().memory().info(device).freeBytes()
                : Double.NaN;
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
                remove(of.meters());
            }
        });
        byAllocator.keySet().retainAll(present);
        for (Allocator allocator : present) {
            if (!byAllocator.containsKey(allocator)) {
                String pool = allocator.pool().map(BoundMeters::nameOf).orElse("none");
                String name = freeName(allocator.toString(), pool);
                byAllocator.put(allocator, new OfAllocator(name, pool, metersOf(allocator, name, pool)));
            }
        }
    }

    /// Returns the spec, with a number added if another allocator of the pool has that name.
    private String freeName(String spec, String pool) {
        Set<String> taken = new HashSet<>();
        byAllocator.values().stream().filter(each -> each.pool.equals(pool)).forEach(each -> taken.add(each.name));
        String name = spec;
        for (int number = 2; taken.contains(name); number++) {
            name = spec + "#" + number;
        }
        return name;
    }

    private List<Meter> metersOf(Allocator allocator, String name, String pool) {
        List<Meter> meters = new ArrayList<>();
        for (int device = 0; device < memory.environment().deviceCount(); device++) {
            Tags tags = Tags.of("device", Integer.toString(device), "allocator", name, "pool", pool);
            addGauges(meters, allocator, device, tags);
            addCounters(meters, allocator, device, tags);
        }
        return meters;
    }

    private static String nameOf(MemoryPool pool) {
        return pool.tag().isEmpty() ? Long.toString(pool.id()) : pool.tag();
    }

    private void addGauges(List<Meter> meters, Allocator allocator, int device, Tags tags) {
        meters.add(bytes("cistern.memory.requested", allocator, tags, from(device, AllocatorStatistics::requestedBytes))
                .description("Bytes that live blocks were asked for")
                .register(registry));
        meters.add(bytes(
                        "cistern.memory.requested.peak",
                        allocator,
                        tags,
                        from(device, AllocatorStatistics::requestedPeakBytes))
                .description("The highest of the bytes that live blocks were asked for")
                .register(registry));
        meters.add(bytes("cistern.memory.reserved", allocator, tags, at -> {
                    var reserved = at.reservedBytes(device);
                    return reserved.isPresent() ? reserved.getAsLong() : Double.NaN;
                })
                .description("Bytes held from the driver")
                .register(registry));
        meters.add(bytes("cistern.memory.largest.free", allocator, tags, at -> largestFree(at, device))
                .description("Bytes of the largest block that is free")
                .register(registry));
        meters.add(bytes("cistern.memory.stranded", allocator, tags, at -> stranded(at, device))
                .description("Idle or waiting bytes that only one stream can use now")
                .register(registry));
        meters.add(Gauge.builder("cistern.blocks.live", allocator, from(device, AllocatorStatistics::liveBlocks))
                .description("Live blocks")
                .tags(tags)
                .register(registry));
    }

    private static Gauge.Builder<Allocator> bytes(
            String name, Allocator allocator, Tags tags, ToDoubleFunction<Allocator> figure) {
        return Gauge.builder(name, allocator, figure).baseUnit(BaseUnits.BYTES).tags(tags);
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

    private void addCounters(List<Meter> meters, Allocator allocator, int device, Tags tags) {
        meters.add(FunctionCounter.builder(
                        "cistern.allocations", allocator, from(device, AllocatorStatistics::allocations))
                .description("Allocations that succeeded")
                .tags(tags)
                .register(registry));
        meters.add(FunctionCounter.builder("cistern.frees", allocator, from(device, AllocatorStatistics::frees))
                .description("Frees")
                .tags(tags)
                .register(registry));
        meters.add(FunctionCounter.builder(
                        "cistern.memory.allocated", allocator, from(device, AllocatorStatistics::requestedTotalBytes))
                .description("Bytes that were asked for so far")
                .baseUnit(BaseUnits.BYTES)
                .tags(tags)
                .register(registry));
    }

    synchronized void end() {
        ended = true;
        remove(ofAll);
        byAllocator.values().forEach(each -> remove(each.meters()));
        byAllocator.clear();
    }

    private void remove(Collection<Meter> meters) {
        meters.forEach(registry::remove);
    }
}
