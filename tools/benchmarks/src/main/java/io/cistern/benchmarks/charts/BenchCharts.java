package io.cistern.benchmarks.charts;

import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/// What `cistern bench` and its peers measured: a pair by size and by live blocks, and how pairs scale with threads.
final class BenchCharts {
    private static final double KIB = 1 << 10;

    private BenchCharts() {}

    static void draw(Path raw, Path charts) throws IOException {
        List<Rows.Row> rows = Rows.json(raw, "bench.jsonl", "bench-peers.jsonl");
        pair(of("pair", rows), charts);
        live(of("scale", rows), charts);
        threads(of("threads", rows), charts);
    }

    private static List<Rows.Row> of(String scenario, List<Rows.Row> rows) {
        return rows.stream()
                .filter(row -> row.text("scenario").equals(scenario))
                .toList();
    }

    private static void pair(List<Rows.Row> rows, Path charts) throws IOException {
        if (rows.isEmpty()) {
            return;
        }
        Drawing drawing = new Drawing(
                "An allocation and a free, one thread" + where(rows), "largest block, KiB", "nanoseconds a pair");
        drawing.style().setXAxisLogarithmic(true);
        lines(rows)
                .forEach((name, own) ->
                        drawing.line(name, numbers("byteSize", KIB, own), numbers("nanosPerPair", 1, own), true));
        drawing.scaled().save(charts, "pair");
    }

    private static void live(List<Rows.Row> rows, Path charts) throws IOException {
        if (rows.isEmpty()) {
            return;
        }
        Drawing drawing = new Drawing(
                "A pair, and an exchange, beside live blocks" + where(rows), "live blocks", "nanoseconds a pair");
        drawing.style().setXAxisLogarithmic(true);
        lines(rows)
                .forEach((name, own) ->
                        drawing.line(name, numbers("liveBlocks", 1, own), numbers("nanosPerPair", 1, own), true));
        drawing.scaled().save(charts, "live");
    }

    private static void threads(List<Rows.Row> rows, Path charts) throws IOException {
        if (rows.isEmpty()) {
            return;
        }
        Drawing drawing = new Drawing("All threads together" + where(rows), "threads", "million pairs a second");
        lines(rows)
                .forEach((name, own) ->
                        drawing.line(name, numbers("threads", 1, own), numbers("pairsPerSecond", 1e6, own), true));
        drawing.scaled().save(charts, "threads");
    }

    /// By allocator, and by variant where a scenario has several.
    private static Map<String, List<Rows.Row>> lines(List<Rows.Row> rows) {
        boolean several =
                rows.stream().map(row -> row.text("variant")).distinct().count() > 1;
        return rows.stream()
                .collect(Collectors.groupingBy(
                        row -> row.text("allocator") + (several ? ", " + row.text("variant") : ""),
                        LinkedHashMap::new,
                        Collectors.toList()));
    }

    private static String where(List<Rows.Row> rows) {
        return " (" + rows.getFirst().text("device") + ")";
    }

    private static List<Double> numbers(String field, double unit, List<Rows.Row> rows) {
        return rows.stream().map(row -> row.number(field) / unit).toList();
    }
}
