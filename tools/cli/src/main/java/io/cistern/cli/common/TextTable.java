package io.cistern.cli.common;

import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Help.Ansi;

/// Formats text for people: rows of cells, whose columns are aligned and whose headings are bold on a terminal, and
/// long lines, which are broken at spaces.
public final class TextTable {
    /// The columns of a terminal.
    public static final int WIDTH = 80;

    private TextTable() {}

    /// Returns a line, broken at spaces where it is wider than a terminal. Longer words stay whole.
    ///
    /// @param indent the spaces before each part but the first
    public static String wrapped(String line, int indent) {
        StringBuilder text = new StringBuilder();
        String rest = line;
        while (rest.length() > WIDTH) {
            int start = Math.max(indent, rest.length() - rest.stripLeading().length()) + 1;
            int end = rest.lastIndexOf(' ', WIDTH);
            end = end >= start ? end : rest.indexOf(' ', start);
            if (end < 0) {
                break;
            }
            text.append(rest, 0, end).append('\n');
            rest = " ".repeat(indent) + rest.substring(end + 1);
        }
        return text.append(rest).toString();
    }

    /// Returns the table; it ends in a newline.
    ///
    /// @param headings lines of headings, each with as many cells as a row
    /// @param rows the cells of each row
    /// @param leftAligned how many of the first columns hold text; the others hold numbers
    public static String format(List<List<String>> headings, List<List<String>> rows, int leftAligned) {
        List<List<String>> all = new ArrayList<>(headings);
        all.addAll(rows);
        int[] widths = widths(all);
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < all.size(); i++) {
            String line = line(all.get(i), widths, leftAligned);
            text.append(i < headings.size() ? Ansi.AUTO.string("@|bold " + line + "|@") : line)
                    .append('\n');
        }
        return text.toString();
    }

    private static int[] widths(List<List<String>> rows) {
        int[] widths = new int[rows.getFirst().size()];
        for (List<String> row : rows) {
            for (int i = 0; i < widths.length; i++) {
                widths[i] = Math.max(widths[i], row.get(i).length());
            }
        }
        return widths;
    }

    private static String line(List<String> cells, int[] widths, int leftAligned) {
        StringBuilder line = new StringBuilder();
        for (int i = 0; i < widths.length; i++) {
            String padding = " ".repeat(widths[i] - cells.get(i).length());
            line.append(i == 0 ? "" : "  ");
            line.append(i < leftAligned ? cells.get(i) + padding : padding + cells.get(i));
        }
        return line.toString().stripTrailing();
    }
}
