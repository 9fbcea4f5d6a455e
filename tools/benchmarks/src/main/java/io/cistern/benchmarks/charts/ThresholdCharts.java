package io.cistern.benchmarks.charts;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/// Time against bytes held, for fixed release thresholds from nothing to all and for the adaptive one: a chart
/// for each workload with phases, and one for all traces.
final class ThresholdCharts {
    private static final double GIB = 1L << 30;
    private static final String KEEP_ALL = "keep_all";
    private static final String ADAPTIVE = "adaptive";

    private ThresholdCharts() {}

    static void draw(Path raw, Path charts) throws IOException {
        Map<String, List<Rows.Row>> phases = workloads(raw, "phases");
        for (Map.Entry<String, List<Rows.Row>> workload : phases.entrySet()) {
            if (workload.getValue().stream()
                    .allMatch(row -> row.text("turnsLost").equals("0"))) {
                phases(workload.getKey(), workload.getValue(), charts);
            }
        }
        Map<String, List<Rows.Row>> traces = workloads(raw, "trace");
        if (!traces.isEmpty()) {
            traces(traces, charts);
        }
    }

    private static Map<String, List<Rows.Row>> workloads(Path raw, String kind) throws IOException {
        return Rows.json(raw, "thresholds.jsonl").stream()
                .filter(row -> row.text("kind").equals(kind))
                .collect(Collectors.groupingBy(row -> row.text("workload"), LinkedHashMap::new, Collectors.toList()));
    }

    private static void phases(String name, List<Rows.Row> rows, Path charts) throws IOException {
        Drawing drawing = new Drawing(
                name + ": release thresholds (simulated)",
                "GiB held, on average over time",
                "time beside keep_all's, percent");
        ToDoubleFunction<Rows.Row> percent = percentOver(rows);
        drawing.style().setYAxisMin(rows.stream().mapToDouble(percent).min().orElseThrow() - 1);
        add(
                drawing,
                "fixed, zero to the peak",
                rows,
                row -> !row.text("threshold").equals(ADAPTIVE),
                row -> row.number("heldBytes") / GIB,
                percent);
        add(drawing, ADAPTIVE, rows, is(ADAPTIVE), row -> row.number("heldBytes") / GIB, percent);
        add(drawing, KEEP_ALL, rows, is(KEEP_ALL), row -> row.number("heldBytes") / GIB, percent);
        drawing.save(charts, "threshold-" + name.replaceAll("[^a-z0-9]+", "-"));
    }

    private static void traces(Map<String, List<Rows.Row>> traces, Path charts) throws IOException {
        Drawing drawing = new Drawing(
                "Traces, awaited each 1000 rows: release thresholds (simulated)",
                "held and not used, as a share of keep_all's",
                "time as a multiple of keep_all's");
        List<Double> shares = new ArrayList<>();
        List<Double> times = new ArrayList<>();
        traces.forEach((name, rows) -> {
            ToDoubleFunction<Rows.Row> percent = percentOver(rows);
            ToDoubleFunction<Rows.Row> time = row -> 1 + percent.applyAsDouble(row) / 100;
            double all = excess(rows.stream().filter(is(KEEP_ALL)).findFirst().orElseThrow());
            add(drawing, name, rows, row -> !row.text("threshold").equals(ADAPTIVE), row -> excess(row) / all, time);
            rows.stream().filter(is(ADAPTIVE)).forEach(row -> {
                shares.add(excess(row) / all);
                times.add(time.applyAsDouble(row));
            });
        });
        drawing.points(ADAPTIVE + ", all traces", shares, times);
        drawing.style().setYAxisMin(1.0);
        drawing.save(charts, "threshold-traces");
    }

    private static double excess(Rows.Row row) {
        return row.number("heldBytes") - row.number("usedBytes");
    }

    private static Predicate<Rows.Row> is(String threshold) {
        return row -> row.text("threshold").equals(threshold);
    }

    private static ToDoubleFunction<Rows.Row> percentOver(List<Rows.Row> rows) {
        double all =
                rows.stream().filter(is(KEEP_ALL)).findFirst().orElseThrow().number("millis");
        return row -> 100 * (row.number("millis") / all - 1);
    }

    /// Fixed thresholds come in the order of their size, all last.
    private static void add(
            Drawing drawing,
            String name,
            List<Rows.Row> rows,
            Predicate<Rows.Row> which,
            ToDoubleFunction<Rows.Row> x,
            ToDoubleFunction<Rows.Row> y) {
        List<Rows.Row> own = new ArrayList<>(rows.stream().filter(which).toList());
        if (own.size() > 1) {
            own.add(own.removeFirst()); // keep_all, which is measured first.
        }
        List<Double> xs = own.stream().map(row -> x.applyAsDouble(row)).toList();
        List<Double> ys = own.stream().map(row -> y.applyAsDouble(row)).toList();
        drawing.line(name, xs, ys, true);
    }
}
