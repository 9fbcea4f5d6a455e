package io.cistern.benchmarks.figures;

import java.util.List;
import java.util.Locale;

/// Builds a table of a page.
final class Table {
    private final StringBuilder text = new StringBuilder();

    Table(List<String> header) {
        row(header);
        text.append("|---".repeat(header.size())).append("|\n");
    }

    void row(List<String> cells) {
        text.append("| ").append(String.join(" | ", cells)).append(" |\n");
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
