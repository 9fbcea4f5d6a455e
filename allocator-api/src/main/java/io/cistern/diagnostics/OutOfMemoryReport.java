package io.cistern.diagnostics;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.internal.names.StreamNames;
import java.io.Serializable;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// A report of the facts known when a request failed because a device had no memory or a limit refused.
///
/// @param byteSize the requested bytes
/// @param device the device
/// @param stream the stream of the request
/// @param freeBytes free bytes of the device, as the driver reported them; empty if the driver did not
///     answer
/// @param totalBytes all bytes of the device; empty if the driver did not answer
/// @param allocators the allocators and pools of this process, the refusing one first
/// @param unusable memory of this process that could not serve the request, the most bytes first
/// @param steps the reclaim steps, in the order in which they were tried
/// @param processes other processes that hold memory of the device, if the system reports them. The system
///     answers slowly, so the first read of this list, of `advice` or of [#text] may wait
/// @param advice human-readable texts that say why the request failed, or what would help
public record OutOfMemoryReport(
        long byteSize,
        int device,
        long stream,
        OptionalLong freeBytes,
        OptionalLong totalBytes,
        List<AllocatorMemory> allocators,
        List<UnusableMemory> unusable,
        List<TriedStep> steps,
        List<ProcessMemory> processes,
        List<String> advice)
        implements Serializable {
    /// How many allocators, streams, reasons and processes the text names at most; the record lists all of them.
    private static final int MAX_NAMED = 8;

    /// Copies the first three lists, but not `processes` and `advice`, which may not be ready yet.
    public OutOfMemoryReport {
        allocators = List.copyOf(allocators);
        unusable = List.copyOf(unusable);
        steps = List.copyOf(steps);
    }

    /// The memory of one allocator or pool.
    ///
    /// @param name the spec of the allocator, or the name of the pool
    /// @param tag the tag of the pool; empty if there is none
    /// @param reservedBytes bytes held from the driver; empty if the allocator does not report them
    /// @param requestedBytes requested bytes of the live blocks
    /// @param liveBlocks the number of live blocks
    /// @param idleBytes reserved bytes that neither a live block nor an allocator built on this one uses; 0
    ///     if `reservedBytes` is empty
    /// @param streams the memory by stream; empty if the allocator does not report it
    public record AllocatorMemory(
            String name,
            String tag,
            OptionalLong reservedBytes,
            long requestedBytes,
            long liveBlocks,
            long idleBytes,
            List<StreamMemory> streams)
            implements Serializable {
        /// Copies the list.
        public AllocatorMemory {
            streams = List.copyOf(streams);
        }

        private Object writeReplace() {
            return new SerializedAllocator(
                    name, tag, bytes(reservedBytes), requestedBytes, liveBlocks, idleBytes, streams);
        }

        private record SerializedAllocator(
                String name,
                String tag,
                @Nullable Long reservedBytes,
                long requestedBytes,
                long liveBlocks,
                long idleBytes,
                List<StreamMemory> streams)
                implements Serializable {
            private Object readResolve() {
                return new AllocatorMemory(
                        name, tag, bytes(reservedBytes), requestedBytes, liveBlocks, idleBytes, streams);
            }
        }

        /// Returns the bytes that the allocator holds, as far as they are known.
        private long heldBytes() {
            return Math.max(reservedBytes.orElse(0), requestedBytes);
        }

        /// Returns the size of the largest block that is free for some stream; empty if unknown.
        public OptionalLong largestFreeBytes() {
            return streams.stream().mapToLong(StreamMemory::largestFreeBytes).max();
        }
    }

    /// The memory of another process.
    ///
    /// @param processId its process ID, as NVML reports it; in a container it may be the ID on the host
    /// @param byteSize bytes of the device that the process holds; empty if the system does not report them
    public record ProcessMemory(long processId, OptionalLong byteSize) implements Serializable {
        private Object writeReplace() {
            return new SerializedProcess(processId, bytes(byteSize));
        }

        private record SerializedProcess(
                long processId, @Nullable Long byteSize) implements Serializable {
            private Object readResolve() {
                return new ProcessMemory(processId, bytes(byteSize));
            }
        }
    }

    private Object writeReplace() {
        return new SerializedReport(
                byteSize,
                device,
                stream,
                bytes(freeBytes),
                bytes(totalBytes),
                allocators,
                unusable,
                steps,
                List.copyOf(processes),
                List.copyOf(advice));
    }

    /// The report with [Long] instead of [OptionalLong], which is not serializable.
    private record SerializedReport(
            long byteSize,
            int device,
            long stream,
            @Nullable Long freeBytes,
            @Nullable Long totalBytes,
            List<AllocatorMemory> allocators,
            List<UnusableMemory> unusable,
            List<TriedStep> steps,
            List<ProcessMemory> processes,
            List<String> advice)
            implements Serializable {
        private Object readResolve() {
            return new OutOfMemoryReport(
                    byteSize,
                    device,
                    stream,
                    bytes(freeBytes),
                    bytes(totalBytes),
                    allocators,
                    unusable,
                    steps,
                    processes,
                    advice);
        }
    }

    private static @Nullable Long bytes(OptionalLong known) {
        return known.isPresent() ? known.getAsLong() : null;
    }

    private static OptionalLong bytes(@Nullable Long known) {
        return known == null ? OptionalLong.empty() : OptionalLong.of(known);
    }

    /// Returns a human-readable text that says how much of the device's memory is free, followed by
    /// [#holderText]: "the device has … free of …, and … holds …". If the request is larger than the
    /// device, the text gives only the size of the device.
    public String deviceText() {
        if (totalBytes.isPresent() && totalBytes.getAsLong() < byteSize) {
            return "the device has " + known(totalBytes) + " in all";
        }
        return (freeBytes.isPresent() ? "the device has " + freeText() : "the device's free memory is unknown")
                + holderText();
    }

    private String freeText() {
        return known(freeBytes) + " free of " + known(totalBytes);
    }

    /// Returns a human-readable text that names the allocator or pool with the most bytes in live blocks:
    /// ", and … holds …". Empty if that is the refusing one, or if there are no live blocks.
    public String holderText() {
        return largestHolder()
                .filter(each -> !each.equals(allocators.getFirst()))
                .map(each -> ", and " + each.name() + " holds " + ByteSizes.exact(each.requestedBytes()))
                .orElse("");
    }

    /// Returns the allocator or pool with the most bytes in live blocks; empty if there are no live blocks.
    public Optional<AllocatorMemory> largestHolder() {
        return allocators.stream()
                .filter(each -> each.requestedBytes() > 0)
                .reduce((most, each) -> each.requestedBytes() > most.requestedBytes() ? each : most);
    }

    /// Returns a human-readable text that says what compaction did, or what it could have freed and why it
    /// did not: "; compaction: …". Empty if compaction was not tried, or has no remark.
    public String compactionText() {
        return steps.stream()
                .filter(tried ->
                        tried.step() == ReclaimStep.COMPACTION && !tried.note().isEmpty())
                .map(tried -> "; compaction: " + tried.note())
                .collect(Collectors.joining());
    }

    /// Returns the report as human-readable text of several lines.
    public String text() {
        StringBuilder text = new StringBuilder();
        line(text, ByteSizes.exact(byteSize) + " were requested on device " + device + ", " + StreamNames.of(stream));
        line(text, "device: " + (freeBytes.isPresent() ? freeText() : "free memory unknown"));
        advice.forEach(each -> line(text, "advice: " + each));
        describeAllocators(text);
        unusable.stream().limit(MAX_NAMED).forEach(each -> line(text, "unusable: " + each.text()));
        String failed = steps.stream()
                .filter(OutOfMemoryReport::isWithoutSuccess)
                .map(each -> each.step().text())
                .collect(Collectors.joining(", "));
        steps.stream().filter(each -> !isWithoutSuccess(each)).forEach(each -> line(text, "tried " + each));
        if (!failed.isEmpty()) {
            line(text, "tried without success: " + failed);
        }
        describeProcesses(text);
        return text.toString();
    }

    private void describeAllocators(StringBuilder text) {
        allocators.stream().limit(1).forEach(refusing -> describe(text, refusing));
        List<AllocatorMemory> others = allocators.stream()
                .skip(1)
                .sorted(Comparator.comparingLong(AllocatorMemory::heldBytes).reversed())
                .toList();
        others.stream().limit(MAX_NAMED).forEach(each -> describe(text, each));
        lineOfOthers(text, "allocators and pools", others.stream().map(AllocatorMemory::heldBytes));
    }

    private void describeProcesses(StringBuilder text) {
        List<ProcessMemory> sorted = processes.stream()
                .sorted(Comparator.comparingLong(
                                (ProcessMemory each) -> each.byteSize().orElse(0))
                        .reversed())
                .toList();
        sorted.stream()
                .limit(MAX_NAMED)
                .forEach(each -> line(text, "process " + each.processId() + " holds " + known(each.byteSize())));
        lineOfOthers(
                text, "processes", sorted.stream().map(each -> each.byteSize().orElse(0)));
    }

    /// Adds a line about the holders that have no line of their own.
    private static void lineOfOthers(StringBuilder text, String what, Stream<Long> heldBytes) {
        List<Long> others = heldBytes.skip(MAX_NAMED).toList();
        if (!others.isEmpty()) {
            long sum = others.stream().mapToLong(Long::longValue).sum();
            line(text, "and " + others.size() + " other " + what + " with " + ByteSizes.exact(sum) + " in all");
        }
    }

    private static boolean isWithoutSuccess(TriedStep tried) {
        return tried.byteSize() == 0 && tried.note().isEmpty();
    }

    private static void describe(StringBuilder text, AllocatorMemory allocator) {
        line(
                text,
                allocator.name() + ": " + known(allocator.reservedBytes()) + " reserved, "
                        + ByteSizes.exact(allocator.requestedBytes()) + " requested in " + allocator.liveBlocks()
                        + (allocator.liveBlocks() == 1 ? " live block" : " live blocks") + ", largest free block "
                        + known(allocator.largestFreeBytes()));
        allocator.streams().stream()
                .limit(MAX_NAMED)
                .forEach(each -> line(
                        text,
                        "  " + StreamNames.of(each.stream()) + ": " + ByteSizes.exact(each.liveBytes())
                                + " live, largest free block " + ByteSizes.exact(each.largestFreeBytes())));
    }

    private static void line(StringBuilder text, String line) {
        text.append(text.isEmpty() ? "" : "\n").append(line);
    }

    private static String known(OptionalLong bytes) {
        return bytes.isPresent() ? ByteSizes.exact(bytes.getAsLong()) : "unknown";
    }
}
