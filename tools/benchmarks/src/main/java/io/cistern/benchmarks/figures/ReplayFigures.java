package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.ToDoubleFunction;

/// Makes tables of replays of recorded programs beside peers.
final class ReplayFigures {
    private static final String FILE = "replays.jsonl";
    private static final String LONG = "long-replays.jsonl";
    private static final String WHOLE_TRACES = "whole-traces.jsonl";
    private static final String WAITING = "caching:reuse=wait";
    private static final String EXPANDABLE = "torch:expandable_segments:True";
    private static final String DIRECT = "direct";

    private ReplayFigures() {}

    /// Describes the bytes that programs reserve, replayed without work on their blocks.
    static String reserved(RawOutput raw) {
        return "Over ten recorded programs, five not used for tuning, `caching` reserves " + ratios(raw, "caching")
                + " times the bytes\nrequested; PyTorch's expandable segments " + ratios(raw, EXPANDABLE) + ". "
                + raw.source(FILE) + ".\n";
    }

    private static String ratios(RawOutput raw, String allocator) {
        List<Row> rows = Row.where(raw.json(FILE), "allocator", allocator, "work", "none");
        double worst =
                rows.stream().mapToDouble(row -> row.number("ratio")).max().orElseThrow();
        return Table.format(
                "%.3f (geometric mean; %.3f at worst)", Table.geometricMean(rows, row -> row.number("ratio")), worst);
    }

    static String hostTime(RawOutput raw) {
        return table(raw, "async", "none", row -> row.number("nanosPerOperation"), "host ns")
                + "\nNanoseconds of the host for an allocation or a free, and memory reserved over memory requested at the peak.\n"
                + "`caching:fit=tight` reserves " + ratios(raw, "caching:fit=tight") + ". "
                + raw.source(FILE) + ".\n";
    }

    static String withFills(RawOutput raw) {
        return table(raw, WAITING, "memset", row -> row.number("wallMillis"), "ms a pass")
                + "\nThe same with GPU work: each block is filled on its stream. Milliseconds until the GPU has done a pass, and the"
                + "\nsame ratio. On several streams `caching` rather takes more memory than waits for another stream; `reuse=wait`"
                + "\nwaits. " + raw.source(FILE) + ".\n";
    }

    private static String table(RawOutput raw, String second, String work, ToDoubleFunction<Row> time, String unit) {
        List<String> allocators = List.of("caching", second, "torch", EXPANDABLE, "cudaMallocAsync");
        Table table = new Table(header(unit, allocators));
        List<Row> rows = raw.json(FILE);
        Names.PROGRAMS.keySet().forEach(trace -> table.row(cells(rows, trace, allocators, work, time)));
        List<String> means = new ArrayList<>(List.of("geometric mean"));
        allocators.forEach(allocator -> {
            List<Row> own = Row.where(rows, "allocator", allocator, "work", work);
            means.add(cell(Table.geometricMean(own, time), Table.geometricMean(own, row -> row.number("ratio"))));
        });
        table.row(means);
        return table.toString();
    }

    /// Makes the table of the programs of several streams, played for longer.
    static String longer(RawOutput raw) {
        List<String> allocators = List.of("caching", WAITING, "caching:reuse=never", "torch", EXPANDABLE);
        Table table = new Table(header("ms a pass", allocators));
        for (String trace : List.of("bert_streams", "vit_streams")) {
            table.row(cells(raw.json(LONG), trace, allocators, "memset", row -> row.number("wallMillis")));
        }
        return table + "\nMedians of 60 passes. " + raw.source(LONG) + ".\n";
    }

    private static String[] header(String unit, List<String> allocators) {
        List<String> header = new ArrayList<>(List.of(unit + " · ratio"));
        allocators.forEach(allocator -> header.add(Names.allocator(allocator)));
        return header.toArray(String[]::new);
    }

    private static List<String> cells(
            List<Row> rows, String trace, List<String> allocators, String work, ToDoubleFunction<Row> time) {
        List<String> cells = new ArrayList<>(List.of(Objects.requireNonNull(Names.PROGRAMS.get(trace))));
        allocators.forEach(allocator -> {
            Row row = Row.only(rows, "trace", trace, "allocator", allocator, "work", work);
            cells.add(cell(time.applyAsDouble(row), row.number("ratio")));
        });
        return cells;
    }

    private static String cell(double time, double ratio) {
        return Table.rounded(time) + " · " + Table.format("%.3f", ratio);
    }

    /// Makes the table of milliseconds a pass, and the speed-up over `direct`.
    static String wholeTraces(RawOutput raw) {
        Map<String, Map<String, Double>> millis = new LinkedHashMap<>();
        Row.where(raw.json(WHOLE_TRACES), "work", "memset")
                .forEach(row -> millis.computeIfAbsent(row.text("trace"), _ -> new LinkedHashMap<>())
                        .put(row.text("allocator"), row.number("wallMillis")));
        Set<String> allocators = new LinkedHashSet<>(List.of(DIRECT));
        millis.values().forEach(times -> allocators.addAll(times.keySet()));
        List<String> header = new ArrayList<>(List.of("ms a pass"));
        allocators.forEach(each -> header.add("`" + each.replace("async:release_threshold=", "async ") + "`"));
        Table table = new Table(header.toArray(String[]::new));
        millis.forEach((trace, times) -> {
            List<String> cells = new ArrayList<>(List.of(trace));
            allocators.forEach(each -> cells.add(Table.format("%.1f", millis(times, each))));
            table.row(cells);
        });
        List<String> means = new ArrayList<>(List.of("as fast as `direct`, geometric mean"));
        allocators.forEach(each -> means.add(Table.format(
                "%.1f ×",
                Math.exp(millis.values().stream()
                        .mapToDouble(times -> Math.log(gain(times, each)))
                        .average()
                        .orElseThrow()))));
        table.row(means);
        return table + "\n" + raw.source(WHOLE_TRACES) + ".\n";
    }

    private static double gain(Map<String, Double> times, String allocator) {
        return millis(times, DIRECT) / millis(times, allocator);
    }

    private static double millis(Map<String, Double> times, String allocator) {
        return times.getOrDefault(allocator, Double.NaN);
    }
}
