package io.cistern.benchmarks.charts;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/// What each allocator reserved against what the program requested, over the first pass of each trace.
final class ReservedCharts {
    private static final double GIB = 1 << 30;

    private ReservedCharts() {}

    static void draw(Path raw, Path charts) throws IOException {
        for (Map.Entry<String, List<Rows.Row>> trace :
                by("trace", Rows.csv(raw, "series*.csv")).entrySet()) {
            draw(trace.getKey(), trace.getValue(), charts);
        }
    }

    private static void draw(String trace, List<Rows.Row> rows, Path charts) throws IOException {
        String device = rows.getFirst().text("device");
        Drawing drawing = new Drawing(
                trace + ": reserved and requested (" + device + ")", "allocations and frees, in thousands", "GiB");
        Map<String, List<Rows.Row>> allocators = by("allocator", rows);
        List<Rows.Row> any = allocators.values().iterator().next();
        allocators.forEach((allocator, own) -> {
            String its = own.getFirst().text("device");
            String name = its.equals(device) ? allocator : allocator + " on " + its;
            drawing.line(name, thousands(own), gibibytes("reservedBytes", own), false);
        });
        drawing.style().setXAxisMin(0.0);
        drawing.dashed("requested", thousands(any), gibibytes("requestedBytes", any));
        drawing.save(charts, "reserved-" + trace);
    }

    private static Map<String, List<Rows.Row>> by(String field, List<Rows.Row> rows) {
        return rows.stream()
                .collect(Collectors.groupingBy(row -> row.text(field), LinkedHashMap::new, Collectors.toList()));
    }

    /// One that is off the others' distance makes XChart take round numbers for the axis, and not these.
    private static List<Double> thousands(List<Rows.Row> rows) {
        List<Double> thousands = new ArrayList<>(
                rows.stream().map(row -> row.number("operation") / 1e3).toList());
        thousands.set(thousands.size() - 1, 1.0001 * thousands.getLast());
        return thousands;
    }

    private static List<Double> gibibytes(String field, List<Rows.Row> rows) {
        return rows.stream().map(row -> row.number(field) / GIB).toList();
    }
}
