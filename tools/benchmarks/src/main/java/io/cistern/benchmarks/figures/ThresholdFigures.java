package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/// Makes tables of release thresholds of `async`: programs on a simulated GPU, and whole traces on a real one.
final class ThresholdFigures {
    private static final String STUDY = "thresholds.jsonl";
    private static final String CHANCE = "peaks-by-chance.jsonl";
    private static final String WHOLE_TRACES = "whole-traces.jsonl";
    private static final String DIRECT = "direct";
    private static final double GIB = 1L << 30;
    private static final String KEEP_ALL = "keep_all";
    private static final String ADAPTIVE = "adaptive";

    private ThresholdFigures() {}

    static String programs(RawOutput raw) {
        return study(raw, "phases");
    }

    static String traces(RawOutput raw) {
        return study(raw, "trace");
    }

    private static String study(RawOutput raw, String kind) {
        Table table = new Table(List.of(
                "",
                "`keep_all` takes",
                "`adaptive`",
                "`zero`",
                "best fixed that holds no more than `adaptive`",
                "GiB held by `keep_all`",
                "by `adaptive`",
                "its excess",
                "peaks, GiB"));
        Map<String, List<Rows.Row>> byWorkload = new LinkedHashMap<>();
        Select.where(raw.json(STUDY), "kind", kind)
                .forEach(row -> byWorkload
                        .computeIfAbsent(row.text("workload"), _ -> new ArrayList<>())
                        .add(row));
        byWorkload.forEach((workload, rows) -> {
            Rows.Row all = Select.only(rows, "threshold", KEEP_ALL);
            Rows.Row adaptive = Select.only(rows, "threshold", ADAPTIVE);
            Rows.Row zero = Select.only(rows, "threshold", "0");
            table.row(List.of(
                    workload,
                    seconds(all),
                    beside(adaptive, all),
                    beside(zero, all),
                    bestFixed(rows, adaptive, all),
                    gib(all, "heldBytes"),
                    gib(adaptive, "heldBytes"),
                    Table.format("%.0f %%", 100 * excess(adaptive) / excess(all)),
                    gib(all, "heldPeakBytes") + ", " + gib(adaptive, "heldPeakBytes")));
        });
        return table + "\n" + raw.source(STUDY) + ".\n";
    }

    private static String seconds(Rows.Row row) {
        return Table.format("%.1f s", row.number("millis") / 1e3) + lost(row);
    }

    private static String lost(Rows.Row row) {
        return row.number("turnsLost") == 0 ? "" : ", " + row.text("turnsLost") + " turns lost";
    }

    /// Programs that lose turns do other work, so their times are not compared.
    private static String beside(Rows.Row row, Rows.Row all) {
        return row.number("turnsLost") + all.number("turnsLost") > 0
                ? seconds(row)
                : Table.format("%+.2f %%", 100 * (row.number("millis") / all.number("millis") - 1));
    }

    private static String bestFixed(List<Rows.Row> rows, Rows.Row adaptive, Rows.Row all) {
        Predicate<Rows.Row> holdsNoMore = row -> row.number("heldBytes") <= adaptive.number("heldBytes");
        return all.number("turnsLost") > 0
                ? "–"
                : rows.stream()
                        .filter(row -> !row.text("threshold").equals(ADAPTIVE))
                        .filter(holdsNoMore)
                        .min((a, b) -> Double.compare(a.number("millis"), b.number("millis")))
                        .map(row -> beside(row, all))
                        .orElse("–");
    }

    private static double excess(Rows.Row row) {
        return row.number("heldBytes") - row.number("usedBytes");
    }

    private static String gib(Rows.Row row, String field) {
        return Table.format("%.2f", row.number(field) / GIB);
    }

    static String peaksByChance(RawOutput raw) {
        Table table = new Table(List.of(
                "pages of 32 MiB at the peak",
                "`keep_all`",
                "`adaptive`",
                "`keep_all`, a delay before one call in 2: least, median, most",
                "one in 50"));
        List<Rows.Row> rows = raw.json(CHANCE);
        for (String prefix : List.of("", "reuse_allow_opportunistic=false,")) {
            for (String workload : List.of("long_lived", "drifting")) {
                String spec = "async:" + prefix + "release_threshold=";
                table.row(List.of(
                        workload + (prefix.isEmpty() ? "" : ", not opportunistic"),
                        peaks(rows, workload, spec + KEEP_ALL, "0"),
                        peaks(rows, workload, spec + ADAPTIVE, "0"),
                        peaks(rows, workload, spec + KEEP_ALL, "2"),
                        peaks(rows, workload, spec + KEEP_ALL, "50")));
            }
        }
        return table + "\n" + raw.source(CHANCE) + ".\n";
    }

    private static String peaks(List<Rows.Row> rows, String workload, String spec, String delayed) {
        int[] pages = Select.where(
                        rows, "workload", workload, "allocator", spec, "looksTakeTime", "true", "delayedOneIn", delayed)
                .stream()
                .mapToInt(row -> (int) row.number("heldPeakPages"))
                .sorted()
                .toArray();
        return pages.length == 1
                ? Integer.toString(pages[0])
                : pages[0] + ", " + pages[pages.length / 2] + ", " + pages[pages.length - 1];
    }

    /// Makes the table of milliseconds a pass, and the speed-up over `direct`.
    static String wholeTraces(RawOutput raw) {
        Map<String, Map<String, Double>> millis = new LinkedHashMap<>();
        Select.where(raw.json(WHOLE_TRACES), "work", "memset")
                .forEach(row -> millis.computeIfAbsent(row.text("trace"), _ -> new LinkedHashMap<>())
                        .put(row.text("allocator"), row.number("wallMillis")));
        Set<String> allocators = new LinkedHashSet<>(List.of(DIRECT));
        millis.values().forEach(times -> allocators.addAll(times.keySet()));
        List<String> header = new ArrayList<>(List.of("ms a pass"));
        allocators.forEach(
                allocator -> header.add("`" + allocator.replace("async:release_threshold=", "async ") + "`"));
        Table table = new Table(header);
        millis.forEach((trace, times) -> {
            List<String> cells = new ArrayList<>(List.of(trace));
            allocators.forEach(allocator ->
                    cells.add(Table.format("%.1f (%.1f ×)", millis(times, allocator), gain(times, allocator))));
            table.row(cells);
        });
        List<String> means = new ArrayList<>(List.of("geometric mean of the gains"));
        allocators.forEach(allocator -> means.add(Table.format(
                "%.1f ×",
                Math.exp(millis.values().stream()
                        .mapToDouble(times -> Math.log(gain(times, allocator)))
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
