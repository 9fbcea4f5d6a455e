package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.DoubleStream;

/// Makes tables of replays of recorded programs against peers.
final class ReplayFigures {
    /// Allocators in turns, with the same number of passes for each.
    static final String FILE = "replays.jsonl";

    /// Replays of generated programs on the simulated GPU, some with models of PyTorch's allocator.
    static final String GENERATED = "generated-programs.jsonl";

    static final String NONE = "none";
    static final String FILLS = "memset";
    static final String HOST_NANOS = "nanosPerOperation";
    static final String PASS_MILLIS = "wallMillis";
    static final String FIRST_PASS_MILLIS = "firstPassMillis";

    private static final String LONG = "long-replays.jsonl";
    private static final String EXPANDABLE = "torch:expandable_segments:True";
    private static final List<String> ALLOCATORS = List.of("caching", "torch", EXPANDABLE, "cudaMallocAsync");
    private static final Map<String, String> GENERATED_ALLOCATORS = Map.of(
            "async", "the driver's pool",
            "caching", "`caching`",
            "pytorch-expandable", "PyTorch, expandable",
            "pytorch-native", "PyTorch 2.11");

    private ReplayFigures() {}

    static String hostTime(RawOutput raw) {
        return table(raw, NONE, HOST_NANOS, "host ns · ratio", false) + ending(raw);
    }

    static String firstPasses(RawOutput raw) {
        return table(raw, NONE, FIRST_PASS_MILLIS, "first pass, ms", false) + ending(raw);
    }

    static String withFills(RawOutput raw) {
        return table(raw, FILLS, PASS_MILLIS, "ms a pass · ratio", true) + ending(raw);
    }

    private static String ending(RawOutput raw) {
        return "\nThe lowest and the highest of two turns; the driver's pool had one turn. " + raw.source(FILE) + ".\n";
    }

    /// Makes a row for each program and one of their means; that of ratios is geometric.
    private static String table(RawOutput raw, String work, String time, String heading, boolean geometric) {
        boolean withRatio = heading.endsWith("ratio");
        List<Row> rows = Row.where(raw.json(FILE), "work", work);
        Table table = new Table(header(heading, ALLOCATORS));
        Names.PROGRAMS.forEach((trace, name) -> {
            List<String> cells = new ArrayList<>(List.of(name));
            for (String allocator : ALLOCATORS) {
                List<Row> turns = Row.where(rows, "trace", trace, "allocator", allocator);
                cells.add(Table.range(turns, time) + (withRatio ? " · " + ratio(turns) : ""));
            }
            table.row(cells);
        });
        List<String> means = new ArrayList<>(List.of(geometric ? "geometric mean" : "arithmetic mean"));
        for (String allocator : ALLOCATORS) {
            List<Row> own = Row.where(rows, "allocator", allocator);
            double mean = geometric ? geometricMean(own, time) : mean(own, time);
            means.add(Table.rounded(mean) + (withRatio ? Table.format(" · %.3f", geometricMean(own, "ratio")) : ""));
        }
        table.row(means);
        return table.toString();
    }

    private static String[] header(String first, List<String> allocators) {
        List<String> header = new ArrayList<>(List.of(first));
        allocators.forEach(allocator -> header.add(Names.allocator(allocator)));
        return header.toArray(String[]::new);
    }

    private static String ratio(List<Row> rows) {
        return Table.format("%.3f", Table.geometricMean(rows, row -> row.number("ratio")));
    }

    /// Returns the arithmetic mean over the recorded programs, each averaged over its turns.
    static double mean(List<Row> rows, String field) {
        return programs(rows, field).average().orElseThrow();
    }

    private static double geometricMean(List<Row> rows, String field) {
        return Math.exp(programs(rows, field).map(Math::log).average().orElseThrow());
    }

    private static DoubleStream programs(List<Row> rows, String field) {
        return Names.PROGRAMS.keySet().stream()
                .mapToDouble(trace -> Row.where(rows, "trace", trace).stream()
                        .mapToDouble(row -> row.number(field))
                        .average()
                        .orElseThrow());
    }

    /// Makes the table of generated programs, which no rule was chosen on.
    static String generated(RawOutput raw) {
        Table table = new Table(
                "", "reserved over requested, mean", "at worst", "driver calls of a first pass", "of a later pass");
        for (String allocator : List.of("caching", "pytorch-expandable", "pytorch-native", "async")) {
            Row row = Row.only(raw.json(GENERATED), "allocator", allocator, "family", "all");
            table.row(
                    GENERATED_ALLOCATORS.getOrDefault(allocator, allocator),
                    Table.format("%.3f", row.number("meanRatio")),
                    Table.format("%.3f", row.number("worstRatio")),
                    Table.format("%,.0f", row.number("firstPassCalls")),
                    Table.format("%,.0f", row.number("laterPassCalls")));
        }
        return table.with("", raw, GENERATED);
    }

    /// Makes the table of the programs of several streams, played for longer.
    static String longer(RawOutput raw) {
        List<String> allocators = List.of("caching", "caching:reuse=wait", "caching:reuse=never", "torch", EXPANDABLE);
        Table table = new Table(header("ms a pass · ratio", allocators));
        for (String trace : List.of("bert_streams", "vit_streams")) {
            List<String> cells = new ArrayList<>(List.of(Names.PROGRAMS.getOrDefault(trace, trace)));
            allocators.forEach(allocator -> {
                Row row = Row.only(raw.json(LONG), "trace", trace, "allocator", allocator, "work", FILLS);
                cells.add(Table.rounded(row.number(PASS_MILLIS)) + Table.format(" · %.3f", row.number("ratio")));
            });
            table.row(cells);
        }
        return table.with("Medians of 60 passes of one run. ", raw, LONG);
    }
}
