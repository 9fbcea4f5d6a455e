package io.cistern;

import io.cistern.OutOfMemoryReport.AllocatorMemory;
import io.cistern.OutOfMemoryReport.ProcessMemory;
import io.cistern.cuda.DeviceProcesses;
import io.cistern.cuda.LinearMemory.MemoryInfo;
import io.cistern.internal.routing.Route;
import io.cistern.spi.DescribesMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.Supplier;

/// Collects what is known when memory has run out. Never throws and allocates no device memory: what can't be found
/// out is missing in the report.
final class ReportMaker {
    private final DeviceMemory memory;

    ReportMaker(DeviceMemory memory) {
        this.memory = memory;
    }

    OutOfMemoryReport report(Route refusing, long stream, DeviceOutOfMemoryException failure, List<TriedStep> tried) {
        int device = refusing.device();
        List<AllocatorMemory> allocators = orElse(() -> allocators(refusing, device), List.of());
        List<ProcessMemory> processes = orElse(() -> processes(device), List.of());
        OptionalLong free = orElse(() -> OptionalLong.of(info(device).freeBytes()), OptionalLong.empty());
        OptionalLong total = orElse(() -> OptionalLong.of(info(device).totalBytes()), OptionalLong.empty());
        List<String> advice = orElse(() -> advice(failure, allocators, processes, total), List.of());
        return new OutOfMemoryReport(
                failure.byteSize(), device, stream, free, total, allocators, tried, processes, advice);
    }

    private static <T> T orElse(Supplier<T> known, T unknown) {
        try {
            return known.get();
        } catch (RuntimeException unavailable) {
            return unknown;
        }
    }

    private MemoryInfo info(int device) {
        return memory.driver().memory().info(device);
    }

    private List<AllocatorMemory> allocators(Route refusing, int device) {
        List<AllocatorMemory> all = new ArrayList<>();
        for (Allocator allocator : memory.allocators()) {
            AllocatorMemory described = describe(allocator, device);
            all.add(allocator.leads(refusing) ? 0 : all.size(), described);
        }
        return all;
    }

    private AllocatorMemory describe(Allocator allocator, int device) {
        AllocatorStatistics counted = allocator.statistics(device);
        String tag = memory.pools().stream()
                .filter(pool -> pool.allocator() == allocator)
                .map(MemoryPool::tag)
                .findFirst()
                .orElse("");
        return new AllocatorMemory(
                allocator.toString(),
                tag,
                counted.reservedBytes(),
                counted.requestedBytes(),
                counted.liveBlocks(),
                allocator
                        .extension(DescribesMemory.class)
                        .map(describes -> describes.describe(device))
                        .orElse(List.of()));
    }

    private List<ProcessMemory> processes(int device) {
        return DeviceProcesses.others(memory.driver(), device).stream()
                .map(each -> new ProcessMemory(
                        each.processId(),
                        each.byteSize() < 0 ? OptionalLong.empty() : OptionalLong.of(each.byteSize())))
                .toList();
    }

    /// Only what applies here.
    private static List<String> advice(
            DeviceOutOfMemoryException failure,
            List<AllocatorMemory> allocators,
            List<ProcessMemory> processes,
            OptionalLong total) {
        List<String> advice = new ArrayList<>();
        if (failure.isByLimit()) {
            advice.add("a limit refused it, not the device: raise the limit, or free what is charged to it");
            return advice;
        }
        if (total.isPresent() && failure.byteSize() > total.getAsLong()) {
            advice.add("the device has less than that in all: split the request");
            return advice;
        }
        processes.stream()
                .filter(each -> each.byteSize().orElse(0) >= failure.byteSize())
                .forEach(each -> advice.add("process " + each.processId() + " holds enough for it"));
        AllocatorMemory asked = allocators.isEmpty() ? null : allocators.getFirst();
        if (asked != null && asked.reservedBytes().orElse(0) - asked.requestedBytes() >= failure.byteSize()) {
            advice.add(asked.name() + " has enough idle memory in pieces; memory in pages (caching without"
                    + " expandable_segments=false, over a source of handles) can be put together");
        }
        return advice;
    }
}
