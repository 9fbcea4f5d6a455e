package io.cistern.internal.statistics;

import io.cistern.cuda.settings.ByteSizes;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Formats figures as readable text: a table with a line for each figure that rises and falls, and below it
/// the other nonzero figures.
public final class StatisticsTable {
    private static final List<String> METRICS = List.of("current", "peak", "allocated", "freed");
    private static final String BYTES = "bytes";
    private static final int NAME_WIDTH = 34;
    private static final int FIGURE_WIDTH = 12;

    private StatisticsTable() {}

    /// Returns the text.
    ///
    /// @param title its first line
    public static String text(String title, Map<String, Long> figures) {
        Map<String, Map<String, Long>> rows = new LinkedHashMap<>();
        List<String> rest = new ArrayList<>();
        figures.forEach((name, value) -> {
            String metric = name.substring(name.lastIndexOf('.') + 1);
            if (METRICS.contains(metric)) {
                String row = name.substring(0, name.length() - metric.length() - 1);
                rows.computeIfAbsent(row, _ -> new LinkedHashMap<>()).put(metric, value);
            } else if (value != 0) {
                rest.add(name + " " + figure(name, value));
            }
        });
        StringBuilder text = new StringBuilder(title).append('\n').append(" ".repeat(NAME_WIDTH));
        METRICS.forEach(metric -> text.append(right(metric)));
        text.append('\n');
        rows.forEach((row, values) -> text.append(line(row, values)));
        rest.forEach(line -> text.append(line).append('\n'));
        return text.toString();
    }

    private static String line(String row, Map<String, Long> values) {
        String shown = row.endsWith(".all") ? row.substring(0, row.length() - ".all".length()) : "  " + row;
        StringBuilder line = new StringBuilder(shown);
        line.append(" ".repeat(Math.max(1, NAME_WIDTH - shown.length())));
        for (String metric : METRICS) {
            Long value = values.get(metric);
            line.append(right(value == null ? "-" : figure(row, value)));
        }
        return line.append('\n').toString();
    }

    private static String right(String text) {
        return " ".repeat(Math.max(1, FIGURE_WIDTH - text.length())) + text;
    }

    private static String figure(String name, long value) {
        return name.contains(BYTES) || name.equals("largest_free_block") ? bytes(value) : Long.toString(value);
    }

    private static String bytes(long value) {
        return value == Long.MAX_VALUE ? "no limit" : ByteSizes.format(value);
    }
}
