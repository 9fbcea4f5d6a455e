package io.cistern.benchmarks.charts;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToDoubleFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// What slack, memory given for fewer calls of the driver, costs and saves: over all traces of each setting.
final class SlackCharts {
    private static final Pattern SLACK = Pattern.compile("slack=([0-9.]+)");

    private SlackCharts() {}

    static void draw(Path raw, Path charts) throws IOException {
        Map<String, List<Rows.Row>> works = Rows.json(raw, "slack.jsonl").stream()
                .collect(Collectors.groupingBy(row -> row.text("work"), TreeMap::new, Collectors.toList()));
        if (works.isEmpty()) {
            return;
        }
        String device = works.values().iterator().next().getFirst().text("device");
        Drawing memory = new Drawing(
                "Memory for slack, all traces (" + device + ")", "slack, percent", "reserved / requested at the peak");
        memory.style().setYAxisMin(1.0);
        Drawing calls =
                new Drawing("Driver calls for slack, all traces (" + device + ")", "slack, percent", "driver calls");
        works.forEach((work, rows) -> {
            add(memory, work + ", geometric mean", rows, SlackCharts::geometricMean);
            add(
                    memory,
                    work + ", worst",
                    rows,
                    own -> own.stream()
                            .mapToDouble(row -> row.number("ratio"))
                            .max()
                            .orElseThrow());
            add(calls, work + ", first pass", rows, own -> sum("firstPassDriverCalls", own));
            add(calls, work + ", last pass", rows, own -> sum("driverCalls", own));
        });
        memory.save(charts, "slack-memory");
        calls.save(charts, "slack-calls");
    }

    private static void add(Drawing drawing, String name, List<Rows.Row> rows, ToDoubleFunction<List<Rows.Row>> value) {
        TreeMap<Double, List<Rows.Row>> settings = rows.stream()
                .collect(Collectors.groupingBy(SlackCharts::slackPercent, TreeMap::new, Collectors.toList()));
        List<Double> values =
                settings.values().stream().map(value::applyAsDouble).toList();
        drawing.line(name, new ArrayList<>(settings.keySet()), values, true);
    }

    private static double slackPercent(Rows.Row row) {
        Matcher slack = SLACK.matcher(row.text("allocator"));
        if (!slack.find()) {
            throw new IllegalArgumentException("no slack in " + row.text("allocator"));
        }
        return 100 * Double.parseDouble(slack.group(1));
    }

    private static double geometricMean(List<Rows.Row> rows) {
        return Math.exp(rows.stream()
                .mapToDouble(row -> Math.log(row.number("ratio")))
                .average()
                .orElseThrow());
    }

    private static double sum(String field, List<Rows.Row> rows) {
        return rows.stream().mapToDouble(row -> row.number(field)).sum();
    }
}
