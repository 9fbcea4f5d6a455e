package io.cistern.benchmarks.figures;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.stream.Collectors;

/// Makes tables of ONNX Runtime's sessions with each kind of memory.
final class OnnxFigures {
    private static final String FILE = "onnx.txt";
    private static final String CONVOLUTIONS = "onnx-convolutions.txt";
    /// The number of requests from which a run is the long one.
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

    static String serving(RawOutput raw) {
        return table(
                raw,
                FILE,
                Select.where(raw.json(FILE), "threads", "8").stream()
                        .filter(row -> row.number("requests") < LONG)
                        .toList());
    }

    static String convolutions(RawOutput raw) {
        return table(raw, CONVOLUTIONS, raw.json(CONVOLUTIONS));
    }

    private static String table(RawOutput raw, String file, List<Rows.Row> rows) {
        Table table = new Table(List.of(
                "memory from", "requests a second", "p99, ms", "most MiB of the device", "MiB of Cistern", "wrong"));
        SOURCES.forEach((source, name) -> {
            List<Rows.Row> of =
                    rows.stream().filter(row -> source(row).equals(source)).toList();
            if (!of.isEmpty()) {
                table.row(List.of(
                        name,
                        spread(of, "perSecond"),
                        spread(of, "p99Millis"),
                        spread(of, "mostMib"),
                        source.startsWith("cistern") ? spread(of, "reservedMib") : "",
                        spread(of, "wrong")
                                + (of.stream().anyMatch(row -> row.number("failed") > 0) ? ", some failed" : "")));
            }
        });
        LongSummaryStatistics turns =
                rows.stream()
                        .collect(Collectors.groupingBy(OnnxFigures::source, Collectors.counting()))
                        .values()
                        .stream()
                        .mapToLong(Long::longValue)
                        .summaryStatistics();
        String fewest = turns.getMin() == turns.getMax() ? "" : turns.getMin() + " to ";
        return table + "\nMedians of " + fewest + turns.getMax() + " turns, with the lowest and the highest. "
                + raw.source(file) + ".\n";
    }

    private static String source(Rows.Row row) {
        return (row.text("source") + " " + row.text("allocator")).strip();
    }

    /// Returns the median, and the lowest and the highest where they differ.
    private static String spread(List<Rows.Row> rows, String field) {
        double[] values =
                rows.stream().mapToDouble(row -> row.number(field)).sorted().toArray();
        String form = field.equals("p99Millis") ? "%.1f" : "%,.0f";
        String low = Table.format(form, values[0]);
        String high = Table.format(form, values[values.length - 1]);
        return low.equals(high)
                ? low
                : Table.format(form, values[values.length / 2]) + " (" + low + " to " + high + ")";
    }

    /// Makes the table of device memory over time, for changing threads and for the long run.
    static String threads(RawOutput raw) {
        Table table = new Table(List.of("memory from", "requests", "MiB of the device over time", "wrong"));
        Map<String, String> overTime = overTime(raw);
        for (Rows.Row row : raw.json(FILE)) {
            String name = SOURCES.get(source(row));
            if (name != null && (row.number("threads") == 0 || row.number("requests") >= LONG)) {
                table.row(List.of(
                        name,
                        Table.format("%,.0f", row.number("requests"))
                                + (row.number("threads") == 0 ? ", each on a new thread" : " on 8 threads"),
                        overTime.get(row.fields().toString()),
                        row.text("wrong")));
            }
        }
        return table
                + "\nAt the beginning, after a quarter of the time, the half, three quarters, and at the end, once each"
                + " shape had been seen. " + raw.source(FILE) + ".\n";
    }

    /// Returns the samples that follow each row, thinned out to quarters.
    private static Map<String, String> overTime(RawOutput raw) {
        Map<String, String> all = new LinkedHashMap<>();
        List<String> lines = raw.lines(FILE);
        for (int at = 0; at < lines.size(); at++) {
            if (lines.get(at).startsWith("{")) {
                List<String> samples = lines.subList(at + 1, lines.size()).stream()
                        .takeWhile(line -> !line.startsWith("{"))
                        .filter(line -> line.startsWith("sample,"))
                        .map(line -> line.substring(line.lastIndexOf(',') + 1))
                        .toList();
                all.put(
                        Rows.json(FILE, List.of(lines.get(at)))
                                .getFirst()
                                .fields()
                                .toString(),
                        quarters(samples));
            }
        }
        return all;
    }

    private static String quarters(List<String> samples) {
        StringBuilder text = new StringBuilder();
        for (int quarter = 0; quarter <= 4 && !samples.isEmpty(); quarter++) {
            long mib = Long.parseLong(samples.get((samples.size() - 1) * quarter / 4));
            text.append(quarter == 0 ? "" : " · ").append(Table.format("%,d", mib));
        }
        return text.toString();
    }
}
