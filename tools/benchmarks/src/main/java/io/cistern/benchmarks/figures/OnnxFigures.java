package io.cistern.benchmarks.figures;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.stream.Collectors;

/// Makes tables of ONNX Runtime's sessions with each kind of memory.
final class OnnxFigures {
    private static final String FILE = "onnx.txt";
    /// A run of that many requests looks at use over time.
    private static final int LONG = 100_000;

    private static final Map<String, String> SOURCES = new LinkedHashMap<>();

    static {
        SOURCES.put("arena", "ONNX Runtime's arenas");
        SOURCES.put("arena_same", "its arenas, `kSameAsRequested`");
        SOURCES.put("arena_same_no_pattern", "its arenas, the same without memory patterns");
        SOURCES.put("arena_same_one_stream", "its arenas, the same, each session on one stream");
        SOURCES.put("cuda_pool", "its pool of `cudaMallocAsync`, shared");
        SOURCES.put("cistern_session caching", "Cistern, `ONE_OF_SESSION`");
        SOURCES.put("cistern_request caching", "Cistern, `ONE_FOR_EACH_REQUEST`");
        SOURCES.put("cistern_request caching:reuse=wait", "Cistern, `ONE_FOR_EACH_REQUEST`, `caching:reuse=wait`");
    }

    private OnnxFigures() {}

    /// Returns the runs of two encoders that eight threads call.
    static List<Row> served(RawOutput raw) {
        return Row.where(raw.json(FILE), "threads", "8").stream()
                .filter(row -> row.number("requests") < LONG)
                .toList();
    }

    static String serving(RawOutput raw) {
        List<Row> rows = served(raw);
        Table table = new Table(
                "memory from", "requests a second", "p99, ms", "most MiB of the device", "MiB of Cistern", "wrong");
        Map<String, List<Row>> bySource = rows.stream()
                .collect(Collectors.groupingBy(row -> (row.text("source") + " " + row.text("allocator")).strip()));
        SOURCES.forEach((source, name) -> {
            List<Row> own = bySource.getOrDefault(source, List.of());
            if (!own.isEmpty()) {
                String failed = own.stream().anyMatch(row -> row.number("failed") > 0) ? ", some failed" : "";
                table.row(
                        name,
                        Table.spread(own, "perSecond", "%,.0f"),
                        Table.spread(own, "p99Millis", "%.1f"),
                        Table.spread(own, "mostMib", "%,.0f"),
                        source.startsWith("cistern") ? Table.spread(own, "reservedMib", "%,.0f") : "",
                        Table.spread(own, "wrong", "%,.0f") + failed);
            }
        });
        LongSummaryStatistics turns =
                bySource.values().stream().mapToLong(List::size).summaryStatistics();
        String fewest = turns.getMin() == turns.getMax() ? "" : turns.getMin() + " to ";
        return table + "\nMedians of " + fewest + turns.getMax() + " turns, with the lowest and the highest. "
                + raw.source(FILE) + ".\n";
    }
}
