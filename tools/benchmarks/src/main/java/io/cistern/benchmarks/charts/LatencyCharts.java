package io.cistern.benchmarks.charts;

import java.io.IOException;
import java.nio.file.Path;
import java.text.DecimalFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/// The distribution of what single pairs and launches take: beside a neighbour that grows and trims, among
/// pairs of small blocks by allocator, and the slowest one in a thousand by size.
final class LatencyCharts {
    /// On an axis of nines, where 90 % is one and 99.99 % four, so that the rare ones have room; the median is at
    /// 0.
    private static final List<Percentile> PERCENTILES = List.of(
            new Percentile(0, "p50Nanos"),
            new Percentile(1, "p90Nanos"),
            new Percentile(2, "p99Nanos"),
            new Percentile(3, "p999Nanos"),
            new Percentile(4, "p9999Nanos"));

    /// The largest block of the pairs whose distribution is drawn.
    private static final String SMALL = "4096";

    private static final double KIB = 1 << 10;

    private record Percentile(double nines, String field) {}

    private LatencyCharts() {}

    static void draw(Path raw, Path charts) throws IOException {
        List<Rows.Row> beside = Rows.json(raw, "latency.jsonl");
        beside("Launches beside a neighbour", measured(true, beside), charts, "launch-latency");
        beside("Cached pairs beside a neighbour", measured(false, beside), charts, "latency");
        List<Rows.Row> pairs = Rows.json(raw, "bench.jsonl", "bench-peers.jsonl").stream()
                .filter(row -> row.text("scenario").equals("pair"))
                .toList();
        List<Rows.Row> small = pairs.stream()
                .filter(row -> row.text("byteSize").equals(SMALL) && row.has("p50Nanos"))
                .toList();
        if (!small.isEmpty()) {
            distribution(
                    "Single pairs of 2 to 4 KiB, the clock's time included",
                    small,
                    row -> row.text("allocator"),
                    charts,
                    "pair-latency");
        }
        if (!pairs.isEmpty()) {
            slowest(pairs, charts);
        }
    }

    private static List<Rows.Row> measured(boolean launches, List<Rows.Row> rows) {
        return rows.stream()
                .filter(row -> row.text("measured").equals("launch") == launches)
                .toList();
    }

    private static void beside(String title, List<Rows.Row> rows, Path charts, String name) throws IOException {
        if (!rows.isEmpty()) {
            distribution(title, rows, row -> row.text("measured") + " beside " + row.text("beside"), charts, name);
        }
    }

    private static void distribution(
            String title, List<Rows.Row> rows, Function<Rows.Row, String> label, Path charts, String name)
            throws IOException {
        Drawing drawing = new Drawing(title + where(rows), "percentile", "microseconds");
        drawing.style().setxAxisTickLabelsFormattingFunction(LatencyCharts::percentile);
        List<Double> nines = PERCENTILES.stream().map(Percentile::nines).toList();
        for (Rows.Row row : rows) {
            List<Double> micros =
                    PERCENTILES.stream().map(at -> row.number(at.field()) / 1e3).toList();
            drawing.line(label.apply(row), nines, micros, true);
        }
        drawing.scaled().save(charts, name);
    }

    private static void slowest(List<Rows.Row> pairs, Path charts) throws IOException {
        Drawing drawing = new Drawing(
                "The slowest of a thousand pairs, p99.9, the clock's time included" + where(pairs),
                "largest block, KiB",
                "nanoseconds");
        drawing.style().setXAxisLogarithmic(true);
        Map<String, List<Rows.Row>> allocators = pairs.stream()
                .collect(Collectors.groupingBy(row -> row.text("allocator"), LinkedHashMap::new, Collectors.toList()));
        allocators.forEach((allocator, rows) -> drawing.line(
                allocator,
                rows.stream().map(row -> row.number("byteSize") / KIB).toList(),
                rows.stream().map(row -> row.number("p999Nanos")).toList(),
                true));
        drawing.scaled().save(charts, "pair-p999");
    }

    private static String where(List<Rows.Row> rows) {
        return " (" + rows.getFirst().text("device") + ")";
    }

    private static String percentile(double nines) {
        return nines == 0 ? "50" : new DecimalFormat("0.##").format(100 - Math.pow(10, 2 - nines));
    }
}
