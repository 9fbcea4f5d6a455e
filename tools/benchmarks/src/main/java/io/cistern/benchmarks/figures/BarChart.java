package io.cistern.benchmarks.figures;

import java.util.List;

/// Draws bars in groups as SVG, each bar a share of the longest of its group: few colours, real text, the
/// legend above. The same numbers give the same bytes.
final class BarChart extends Chart {
    private static final int WIDTH = 880;
    private static final int LEFT = 230;
    private static final int RIGHT = 790;
    private static final int TOP = 74;
    private static final int BAR = 8;
    private static final int GAP = 8;
    private static final int LEGEND_STEP = 160;

    /// From the palette of Okabe and Ito; the first colour stands out.
    private static final List<String> COLORS = List.of("#0072b2", "#e69f00", "#56b4e9", "#999999");

    private final List<String> names;
    private int top = TOP;

    /// @param names the bars of each group
    /// @param groups how many groups are added later
    BarChart(String title, List<String> names, int groups) {
        super(WIDTH, TOP + groups * (names.size() * BAR + GAP) + 6, title);
        this.names = names;
        add("<text x=\"20\" y=\"26\" font-weight=\"bold\" font-size=\"15\">%s</text>\n", title);
        for (int i = 0; i < names.size(); i++) {
            int left = LEFT + i * LEGEND_STEP;
            add("<rect x=\"%d\" y=\"42\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", left, COLORS.get(i));
            add("<text x=\"%d\" y=\"53\">%s</text>\n", left + 18, names.get(i));
        }
    }

    /// Adds a group; leaves out bars of 0 or less.
    ///
    /// @param values in the order of the names
    /// @param format the format of the number after a bar
    BarChart group(String name, List<Double> values, String format) {
        double longest = values.stream().mapToDouble(Double::doubleValue).max().orElseThrow();
        add(
                "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n",
                LEFT - 12, top + names.size() * BAR / 2 + 5, name);
        for (int i = 0; i < values.size(); i++) {
            if (values.get(i) > 0) {
                bar(values.get(i) / longest, COLORS.get(i), Table.format(format, values.get(i)));
            }
            top += BAR;
        }
        top += GAP;
        return this;
    }

    private void bar(double share, String color, String number) {
        double length = share * (RIGHT - LEFT);
        add("<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", LEFT, top, length, BAR - 1, color);
        add("<text x=\"%.1f\" y=\"%d\" font-size=\"9.5\">%s</text>\n", LEFT + length + 5, top + BAR - 1, number);
    }
}
