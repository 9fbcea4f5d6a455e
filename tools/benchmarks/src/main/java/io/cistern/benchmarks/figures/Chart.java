package io.cistern.benchmarks.figures;

/// Draws charts as SVG: few colours, real text, a title for screen readers, and colours for light and dark pages. The
/// same numbers give the same bytes. Text has the ink's colour by itself; lines of the classes `ink` and
/// `grid` get theirs.
abstract class Chart {
    private final StringBuilder svg = new StringBuilder();

    Chart(int width, int height, String title) {
        add("""
                <svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">
                <title>%s</title>
                <style>
                .chart { fill: #333; }
                .chart .paper { fill: #fff; }
                .chart .ink { stroke: #333; }
                .chart .grid { stroke: #e4e4e4; }
                @media (prefers-color-scheme: dark) {
                .chart { fill: #dfe6ee; }
                .chart .paper { fill: #14191f; }
                .chart .ink { stroke: #dfe6ee; }
                .chart .grid { stroke: #39434e; }
                }
                </style>
                <rect class="paper" width="100%%" height="100%%"/>
                """, width, height, escaped(title));
    }

    static String escaped(String text) {
        return text.replace("&", "&amp;").replace("<", "&lt;");
    }

    final void add(String format, Object... values) {
        svg.append(Table.format(format, values));
    }

    @Override
    public final String toString() {
        return svg + "</svg>\n";
    }
}
