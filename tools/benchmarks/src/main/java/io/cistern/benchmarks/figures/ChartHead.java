package io.cistern.benchmarks.figures;

/// Begins charts as SVG: a title for screen readers, and colours for light and dark pages. Text has the ink's colour
/// by itself; lines of the classes `ink` and `grid` get theirs.
final class ChartHead {
    private ChartHead() {}

    static String of(int width, int height, String title) {
        return Table.format("""
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
}
