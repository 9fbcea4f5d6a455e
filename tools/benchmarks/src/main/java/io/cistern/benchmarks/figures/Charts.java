package io.cistern.benchmarks.figures;

import io.cistern.benchmarks.figures.LineChart.Axis;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Draws the charts of `docs/charts`, by name without `.svg`.
final class Charts {
    static final Map<String, Function<RawOutput, String>> FIGURES = Map.of(
            "pair",
            Charts::pair,
            "threads",
            Charts::threads,
            "reserved-gpt2_train",
            raw -> reserved(raw, "gpt2_train", "GPT-2 training"),
            "reserved-vit_streams",
            raw -> reserved(raw, "vit_streams", "ViT on five streams"),
            "reserved-long_lived",
            raw -> reserved(raw, "long_lived", "Long-lived small blocks among large ones, generated"),
            "jobs",
            JobFigures::chart);

    private static final double GIB = 1 << 30;

    private Charts() {}

    private static String pair(RawOutput raw) {
        List<Row> rows = Row.where(raw.json("pairs.jsonl"), "scenario", "pair");
        List<Double> sizes =
                numbers("byteSize", 1, rows).stream().distinct().sorted().toList();
        LineChart chart = new LineChart(
                "An allocation and its free, one thread, H200",
                new Axis(
                        "largest block",
                        true,
                        sizes,
                        sizes.stream().map(Table::bytes).toList()),
                Axis.logarithmic("nanoseconds a pair", 10, max("nanosPerPair", 1, rows)));
        by("allocator", rows)
                .forEach((spec, own) -> chart.linePoints(
                        Names.allocator(spec), numbers("byteSize", 1, own), numbers("nanosPerPair", 1, own)));
        return chart.toString();
    }

    /// With one thread, both variants are the same and share one row.
    private static String threads(RawOutput raw) {
        List<Row> rows = Row.where(raw.json("pairs.jsonl"), "scenario", "threads", "variant", "own streams");
        List<Double> counts =
                numbers("threads", 1, rows).stream().distinct().sorted().toList();
        LineChart chart = new LineChart(
                "Pairs of all threads together, each on a stream of its own, H200",
                new Axis(
                        "threads",
                        true,
                        counts,
                        counts.stream()
                                .map(count -> Table.format("%.0f", count))
                                .toList()),
                Axis.logarithmic("million pairs a second", 0.1, max("pairsPerSecond", 1e6, rows)));
        by("allocator", rows)
                .forEach((spec, own) -> chart.linePoints(
                        Names.allocator(spec), numbers("threads", 1, own), numbers("pairsPerSecond", 1e6, own)));
        return chart.toString();
    }

    /// Draws reserved against requested bytes over the first pass of a trace. The driver's pool from C is left
    /// out, because it reserves as much as `async`.
    private static String reserved(RawOutput raw, String trace, String title) {
        List<Row> rows = Stream.of("reserved-caching.csv", "reserved-peers.csv")
                .flatMap(file -> Row.where(raw.csv(file), "trace", trace).stream())
                .filter(row -> !row.text("allocator").equals("cudaMallocAsync"))
                .toList();
        LineChart chart = new LineChart(
                title + ": reserved and requested",
                Axis.linear("allocations and frees, in thousands", max("operation", 1e3, rows)),
                Axis.linear("GiB", max("reservedBytes", GIB, rows)));
        Map<String, List<Row>> lines = by("allocator", rows);
        lines.forEach((spec, own) ->
                chart.line(Names.allocator(spec), numbers("operation", 1e3, own), numbers("reservedBytes", GIB, own)));
        List<Row> any = lines.values().iterator().next();
        return chart.dashed("requested", numbers("operation", 1e3, any), numbers("requestedBytes", GIB, any))
                .toString();
    }

    private static Map<String, List<Row>> by(String field, List<Row> rows) {
        return rows.stream()
                .collect(Collectors.groupingBy(row -> row.text(field), LinkedHashMap::new, Collectors.toList()));
    }

    private static List<Double> numbers(String field, double unit, List<Row> rows) {
        return rows.stream().map(row -> row.number(field) / unit).toList();
    }

    private static double max(String field, double unit, List<Row> rows) {
        return Row.samples(rows, field).most() / unit;
    }
}
