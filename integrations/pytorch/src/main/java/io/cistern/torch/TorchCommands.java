package io.cistern.torch;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.observability.HistoryOptions;
import io.cistern.observability.MemoryHistory;
import io.cistern.observability.MemorySnapshot;
import io.cistern.spi.TrimMode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

/// Runs the rare calls, each given as one line of words. [#run] lists the commands.
///
/// **Threads.** Any.
final class TorchCommands {
    private static final System.Logger LOG = System.getLogger(TorchCommands.class.getName());

    private final DeviceMemory memory;
    private final Map<Integer, Long> configuredLimits = new ConcurrentHashMap<>();
    private final CapturedPools pools;
    private final Set<Class<?>> logged = ConcurrentHashMap.newKeySet();

    TorchCommands(DeviceMemory memory) {
        this.memory = memory;
        this.pools = new CapturedPools(memory);
    }

    /// Runs a command.
    ///
    /// @return its answer; empty if it has none
    String run(String command) {
        String[] words = command.split(" ", 2);
        String rest = words.length == 1 ? "" : words[1];
        return switch (words[0]) {
            case "trim" -> trim();
            case "fraction" -> limit(rest.split(" "));
            case "statistics" -> statistics(Integer.parseInt(rest));
            case "reset_peaks" -> resetPeaks(Integer.parseInt(rest));
            case "summary" -> memory.memorySummary(Integer.parseInt(rest));
            case "snapshot" -> snapshot(Path.of(rest));
            case "history" -> history(Boolean.parseBoolean(rest));
            case "capture_begins", "capture_ends", "pool_released" -> pools.run(words[0], rest.split(" "));
            default -> throw new IllegalArgumentException("unknown command: " + command);
        };
    }

    private String trim() {
        for (int device = 0; device < memory.environment().deviceCount(); device++) {
            if (memory.statistics(device).allocations() > 0) { // else this would create a context there
                memory.trim(device, 0, TrimMode.SYNCHRONIZE);
            }
        }
        return "";
    }

    /// Runs `fraction DEVICE SHARE`, which limits the requested bytes of all live blocks to a share of the
    /// device's memory, but never above the configured limit.
    private String limit(String[] words) {
        int device = Integer.parseInt(words[0]);
        MemoryLimit limit = memory.limits().device(device);
        long configured = configuredLimits.computeIfAbsent(device, _ -> limit.byteSize());
        double bytes = Double.parseDouble(words[1]) * memory.environment().totalBytes(device);
        limit.setByteSize(Math.min(configured, (long) bytes));
        return "";
    }

    /// Returns the figures as JSON, summed over allocators, pools and graphs.
    private String statistics(int device) {
        Map<String, Long> figures = new TreeMap<>();
        for (Allocator allocator : memory.allocators()) {
            allocator.memoryStatistics(device).forEach((name, figure) -> figures.merge(name, figure, Long::sum));
        }
        return figures.entrySet().stream()
                .map(each -> '"' + each.getKey() + "\":" + each.getValue())
                .collect(Collectors.joining(",", "{", "}"));
    }

    private String resetPeaks(int device) {
        memory.allocators().forEach(allocator -> allocator.resetPeaks(device));
        return "";
    }

    private String snapshot(Path file) {
        try {
            MemorySnapshot.take(memory).write(file);
            return "";
        } catch (IOException e) {
            throw new UncheckedIOException("the snapshot can't be written to " + file, e);
        }
    }

    private String history(boolean on) {
        MemoryHistory history = MemoryHistory.of(memory);
        if (on) {
            history.start(HistoryOptions.withoutStacks());
        } else {
            history.stop();
        }
        return "";
    }

    /// Logs a failure that can't be reported to a caller, once for each kind.
    void log(Throwable failure) {
        try {
            if (logged.add(failure.getClass())) {
                LOG.log(
                        Level.WARNING,
                        "a free failed; later failures of this kind are not logged: {0}",
                        Failure.text(failure));
            }
        } catch (Throwable full) {
            // The logger threw or the heap is full. The block stays.
        }
    }
}
