package io.cistern.internal.leaks;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.internal.names.StreamNames;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Formats live blocks as text, grouped by allocator, device and site, most bytes first.
public final class LeakReport {
    /// Keeps the log readable.
    private static final int MAX_GROUPS = 20;

    private record Origin(String allocator, int device, List<StackTraceElement> site) {}

    private LeakReport() {}

    /// Returns the text.
    ///
    /// @param where the moment that the blocks outlived
    public static String text(String where, List<LiveBlock> blocks) {
        Map<Origin, List<LiveBlock>> groups = new LinkedHashMap<>();
        for (LiveBlock block : blocks) {
            groups.computeIfAbsent(new Origin(block.allocator(), block.device(), block.site()), _ -> new ArrayList<>())
                    .add(block);
        }
        StringBuilder text = new StringBuilder(where);
        text.append(": " + blocks.size() + (blocks.size() == 1 ? " live block of " : " live blocks of ")
                + ByteSizes.count(bytes(blocks)));
        groups.entrySet().stream()
                .sorted(Comparator.comparingLong(
                        (Map.Entry<Origin, List<LiveBlock>> group) -> -bytes(group.getValue())))
                .limit(MAX_GROUPS)
                .forEach(group -> append(text, group.getKey(), group.getValue()));
        if (groups.size() > MAX_GROUPS) {
            text.append("\n  and " + (groups.size() - MAX_GROUPS) + " more sites");
        }
        return text.toString();
    }

    private static void append(StringBuilder text, Origin origin, List<LiveBlock> blocks) {
        text.append("\n  " + blocks.size() + (blocks.size() == 1 ? " block of " : " blocks of ")
                + ByteSizes.count(bytes(blocks)) + " from allocator " + origin.allocator
                + " on device " + origin.device);
        blocks.stream()
                .flatMap(block -> block.age().stream())
                .max(Comparator.<Duration>naturalOrder())
                .ifPresent(oldest -> text.append(", up to " + oldest.toMillis() + " ms old"));
        LiveBlock first = blocks.getFirst();
        long streams = blocks.stream()
                .flatMapToLong(block -> block.stream().stream())
                .distinct()
                .count();
        first.stream()
                .ifPresent(stream ->
                        text.append(streams > 1 ? ", " + streams + " streams" : ", " + StreamNames.of(stream)));
        first.thread().ifPresent(thread -> text.append(", thread " + thread));
        if (blocks.stream().anyMatch(LiveBlock::unreachable)) {
            text.append(", in buffers dropped without being closed");
        }
        for (StackTraceElement frame : origin.site) {
            text.append("\n      at " + frame);
        }
    }

    private static long bytes(List<LiveBlock> blocks) {
        return blocks.stream().mapToLong(LiveBlock::byteSize).sum();
    }
}
