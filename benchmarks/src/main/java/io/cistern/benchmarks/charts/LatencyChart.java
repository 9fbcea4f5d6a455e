package io.cistern.benchmarks.charts;

import java.io.IOException;
import java.nio.file.Path;
import java.text.DecimalFormat;
import java.util.List;

/// The percentiles of launches and cached allocations, by what a neighbour does.
final class LatencyChart {
    /// On an axis of nines, where 90 % is one and 99.99 % four, so that the rare ones have room; the median is at
    /// 0.
    private static final List<Percentile> PERCENTILES = List.of(
            new Percentile(0, "p50Nanos"),
            new Percentile(1, "p90Nanos"),
            new Percentile(2, "p99Nanos"),
            new Percentile(3, "p999Nanos"),
            new Percentile(4, "p9999Nanos"));

    private record Percentile(double nines, String field) {}

    private LatencyChart() {}

    static void draw(Path raw, Path charts) throws IOException {
        List<Rows.Row> rows = Rows.json(raw, "latency.jsonl");
        if (rows.isEmpty()) {
            return;
        }
        Drawing drawing = new Drawing(
                "Latency beside a neighbour (" + rows.getFirst().text("device") + ")", "percentile", "microseconds");
        drawing.style().setxAxisTickLabelsFormattingFunction(LatencyChart::percentile);
        List<Double> nines = PERCENTILES.stream().map(Percentile::nines).toList();
        for (Rows.Row row : rows) {
            List<Double> micros =
                    PERCENTILES.stream().map(at -> row.number(at.field()) / 1e3).toList();
            drawing.line(row.text("measured") + " beside " + row.text("beside"), nines, micros, true);
        }
        drawing.scaled().save(charts, "latency");
    }

    private static String percentile(double nines) {
        return nines == 0 ? "50" : new DecimalFormat("0.##").format(100 - Math.pow(10, 2 - nines));
    }
}
