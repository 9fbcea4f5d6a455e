package io.cistern.benchmarks.figures;

import io.cistern.benchmarks.Samples;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.function.DoubleFunction;
import java.util.function.ToDoubleFunction;

/// Builds a table of a page.
final class Table {
    private final StringBuilder text = new StringBuilder();

    Table(String... header) {
        row(List.of(header));
        text.append("|---".repeat(header.length)).append("|\n");
    }

    void row(List<String> cells) {
        text.append("| ").append(String.join(" | ", cells)).append(" |\n");
    }

    void row(String... cells) {
        row(List.of(cells));
    }

    /// Returns the table with a line below it: a remark, and the machines and days of the raw output.
    ///
    /// @param remark empty, or sentences that end with a point and a space
    String with(String remark, RawOutput raw, String... files) {
        return text + "\n" + remark + raw.source(files) + ".\n";
    }

    @Override
    public String toString() {
        return text.toString();
    }

    @SuppressWarnings("AnnotateFormatMethod") // the annotation would need a dependency
    static String format(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }

    /// Formats a number with three significant digits.
    static String rounded(double value) {
        double size = Math.abs(value);
        return format(size < 9.995 ? "%.2f" : size < 99.95 ? "%.1f" : "%.0f", value);
    }

    /// Returns the lowest and the highest value of a field, each with three significant digits.
    static String range(List<Row> rows, String field) {
        return range(Row.samples(rows, field), Table::rounded);
    }

    static String range(Samples values, DoubleFunction<String> number) {
        String low = number.apply(values.least());
        String high = number.apply(values.most());
        return low.equals(high) ? low : low + "–" + high;
    }

    /// Returns the median of a field, and the least and the most where they differ: "81 (75 to 84)".
    static String spread(List<Row> rows, String field, String format) {
        Samples values = Row.samples(rows, field);
        String low = format(format, values.least());
        String high = format(format, values.most());
        return low.equals(high) ? low : format(format + " (%s–%s)", values.median(), low, high);
    }

    static double geometricMean(Collection<Row> rows, ToDoubleFunction<Row> value) {
        return Math.exp(rows.stream()
                .mapToDouble(row -> Math.log(value.applyAsDouble(row)))
                .average()
                .orElseThrow());
    }

    static String bytes(double byteSize) {
        long size = (long) byteSize;
        String[] units = {"B", "KiB", "MiB", "GiB"};
        int unit = 0;
        while (unit < units.length - 1 && size >= 1024 && size % 1024 == 0) {
            size /= 1024;
            unit++;
        }
        return size + " " + units[unit];
    }
}
