package io.cistern.internal.reclaim;

import io.cistern.cuda.LinearMemory.MemoryInfo;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.KeptBlock;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.OutOfMemoryReport.AllocatorMemory;
import io.cistern.diagnostics.OutOfMemoryReport.ProcessMemory;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.diagnostics.TriedStep;
import io.cistern.diagnostics.UnusableMemory;
import io.cistern.diagnostics.UnusableMemory.Reason;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.internal.names.Known;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.registry.Registry;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.RouteStatistics;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Collects the facts known when memory has run out. It never throws and allocates no device memory. The
/// report omits facts that it can't determine.
final class OutOfMemoryReporter {
    private final Registry registry;
    private final OtherProcesses system;

    OutOfMemoryReporter(Registry registry) {
        this.registry = registry;
        this.system =
                new OtherProcesses(registry.driver(), registry.environment().deviceCount());
    }

    OutOfMemoryReport report(Route refusing, long stream, DeviceOutOfMemoryException failure, List<TriedStep> tried) {
        int device = refusing.device();
        List<AllocatorMemory> allocators = allocators(refusing, device);
        boolean byLimit = failure.isByLimit() || failure.canNeverFit(); // then no idle memory would have helped
        List<UnusableMemory> unusable = byLimit ? keptByGraphs(device) : unusable(refusing, device, allocators);
        Optional<MemoryInfo> info =
                Known.orElse(() -> Optional.of(registry.driver().memory().info(device)), Optional.empty());
        OptionalLong free = info.stream().mapToLong(MemoryInfo::freeBytes).findFirst();
        OptionalLong total = info.stream().mapToLong(MemoryInfo::totalBytes).findFirst();
        List<ProcessMemory> processes = system.ask(device); // last, since its thread competes for a processor
        Advice advice = new Advice(failure, registry.reserves().of(device));
        OutOfMemoryReport report = new OutOfMemoryReport(
                failure.byteSize(), device, stream, free, total, allocators, unusable, tried, processes, advice);
        advice.facts = report;
        return report;
    }

    /// Returns whether a limit refused, or an option of the allocator, rather than the device.
    private static boolean isByLimit(DeviceOutOfMemoryException failure, OutOfMemoryReport report) {
        return failure.isByLimit() || (failure.canNeverFit() && !isLargerThanDevice(failure, report));
    }

    private static boolean isLargerThanDevice(DeviceOutOfMemoryException failure, OutOfMemoryReport report) {
        return failure.byteSize() > report.totalBytes().orElse(Long.MAX_VALUE);
    }

    private List<UnusableMemory> unusable(Route refusing, int device, List<AllocatorMemory> allocators) {
        List<UnusableMemory> all = new ArrayList<>();
        for (OpenAllocator allocator : registry.all()) {
            if (allocator.leads(refusing)) {
                all.addAll(allocator.ownFigures(own -> own.unusable(device), List.of()));
            }
        }
        all.addAll(keptByGraphs(device));
        allocators.stream().skip(1).filter(each -> each.idleBytes() > 0).forEach(other -> {
            String remedy = other.tag().isEmpty() ? "" : "a pool opened with lendsToOthers(true) serves other requests";
            all.add(new UnusableMemory(Reason.OTHER_ALLOCATOR, other.idleBytes(), "in " + other.name(), remedy));
        });
        all.sort(Comparator.comparingLong(UnusableMemory::byteSize).reversed());
        return all;
    }

    /// Returns the bytes of freed blocks that graphs keep, for each memory of graphs.
    private List<UnusableMemory> keptByGraphs(int device) {
        Map<String, Long> bytes = new TreeMap<>();
        for (KeptBlock block : registry.leaks().kept()) {
            if (block.device() == device) {
                bytes.merge(block.graph(), block.byteSize(), Long::sum);
            }
        }
        return bytes.entrySet().stream()
                .map(each -> new UnusableMemory(
                        Reason.CAPTURED, each.getValue(), "kept by " + each.getKey(), "close its graphs"))
                .toList();
    }

    private List<AllocatorMemory> allocators(Route refusing, int device) {
        List<AllocatorMemory> all = new ArrayList<>();
        Map<OpenAllocator, Long> lent = bytesUnderPools(device);
        for (OpenAllocator allocator : registry.all()) {
            AllocatorMemory described = describe(allocator, device, lent.getOrDefault(allocator, 0L));
            all.add(allocator.leads(refusing) ? 0 : all.size(), described);
        }
        return all;
    }

    /// Returns the bytes that pools have obtained from the allocators that they are built on.
    private Map<OpenAllocator, Long> bytesUnderPools(int device) {
        Map<OpenAllocator, Long> lent = new HashMap<>();
        for (OpenAllocator each : registry.all()) {
            OpenAllocator.Pool pool = each.pool();
            OpenAllocator upstream = pool == null ? null : pool.upstream();
            if (upstream != null) {
                lent.merge(upstream, each.knownReservedBytes(device).orElse(0), Long::sum);
            }
        }
        return lent;
    }

    private AllocatorMemory describe(OpenAllocator allocator, int device, long lent) {
        RouteStatistics counted = allocator.statistics(device);
        OpenAllocator.Pool pool = allocator.pool();
        List<StreamMemory> streams = allocator.ownFigures(own -> own.heldByStream(device), List.of());
        OptionalLong reserved = allocator.knownReservedBytes(device);
        long used = Math.max(counted.requestedBytes() + lent, used(allocator, streams, device));
        return new AllocatorMemory(
                allocator.toString(),
                pool == null ? "" : pool.tag(),
                reserved,
                counted.requestedBytes(),
                allocator.liveBlocks(device),
                Math.max(0, reserved.orElse(0) - used),
                streams);
    }

    /// Returns the bytes in blocks by the allocator's own account, which includes those of adaptors; 0 if it
    /// keeps none.
    private static long used(OpenAllocator allocator, List<StreamMemory> streams, int device) {
        return streams.isEmpty()
                ? allocator.ownFigures(
                        own -> own.statistics(device).getOrDefault("allocated_bytes.all.current", 0L), 0L)
                : streams.stream().mapToLong(StreamMemory::liveBytes).sum();
    }

    /// The sentences of advice that apply.
    private static final class Advice extends LazyList<String> {
        private final DeviceOutOfMemoryException failure;
        private final long reserve;

        /// Set before the list is read.
        private volatile @Nullable OutOfMemoryReport facts;

        Advice(DeviceOutOfMemoryException failure, long reserve) {
            this.failure = failure;
            this.reserve = reserve;
        }

        @Override
        List<String> make() {
            return of(Objects.requireNonNull(facts));
        }

        private List<String> of(OutOfMemoryReport report) {
            List<String> advice = new ArrayList<>();
            if (isByLimit(failure, report)) {
                advice.add("a limit refused the request, not the device: " + failure.detail());
                return advice;
            }
            if (isLargerThanDevice(failure, report)) {
                advice.add("the request is larger than the device's memory: split it");
                return advice;
            }
            report.processes().stream()
                    .filter(each -> each.byteSize().orElse(0) >= failure.byteSize())
                    .max(Comparator.comparingLong(each -> each.byteSize().orElse(0)))
                    .ifPresent(
                            each -> advice.add("process " + each.processId() + " holds enough memory for the request"));
            OptionalLong free = report.freeBytes();
            List<AllocatorMemory> allocators = report.allocators();
            long usable = free.orElse(Long.MAX_VALUE / 2)
                    + allocators.stream().mapToLong(AllocatorMemory::idleBytes).sum();
            if (usable < failure.byteSize()) {
                advice.add("memory is exhausted: only " + ByteSizes.exact(usable) + " is free or idle");
                report.largestHolder()
                        .ifPresent(each -> advice.add("free blocks of " + each.name() + ", which holds the most: "
                                + ByteSizes.exact(each.requestedBytes())));
                return advice;
            }
            if (reserve > 0 && failure.byteSize() > free.orElse(0) - reserve) {
                advice.add(DeviceReserves.text(reserve, free.orElse(0))
                        + ": lower the reserve (DeviceLimits.setReserve), or free blocks");
                return advice;
            }
            AllocatorMemory asked = allocators.isEmpty() ? null : allocators.getFirst();
            if (asked != null && asked.idleBytes() >= failure.byteSize()) {
                String settings = report.unusable().stream()
                        .filter(each ->
                                each.reason() == Reason.BESIDE_LIVE_BLOCKS || each.reason() == Reason.IDLE_ELSEWHERE)
                        .map(UnusableMemory::remedy)
                        .filter(each -> !each.isEmpty())
                        .distinct()
                        .collect(Collectors.joining("; "));
                advice.add(asked.name() + " has enough idle memory, but in pieces that are too small"
                        + (settings.isEmpty() ? "" : ": " + settings));
            } else if (asked != null && free.orElse(0) >= failure.byteSize()) {
                String reason = failure.getCause() instanceof DeviceOutOfMemoryException told ? told.detail() : "";
                advice.add("the device has enough free memory, so " + asked.name() + " itself refused the request: "
                        + (reason.isEmpty() ? "free its blocks, or check its options" : reason));
            }
            return advice;
        }
    }
}
