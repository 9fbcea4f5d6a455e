package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.DoubleStream;

/// Draws lines as SVG: few lines, colours that colour-blind people can distinguish, real text, the legend
/// beside the plot. The same numbers give the same bytes.
final class LineChart extends Chart {
    private static final int WIDTH = 880;
    private static final int HEIGHT = 400;
    private static final int LEFT = 80;
    private static final int RIGHT = 640;
    private static final int TOP = 44;
    private static final int BOTTOM = 346;
    private static final int LEGEND_STEP = 22;
    private static final int LEGEND_GAP = 18;
    private static final int LEGEND_LINE = 26;
    private static final int MAX_TICKS = 7;

    /// From the palette of Okabe and Ito, without yellow, which is too light on white.
    private static final List<String> COLORS =
            List.of("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#808080");

    /// One axis of the chart: the positions of its labels, the first and last of which are its ends,
    /// and the labels.
    ///
    /// @param logarithmic whether equal factors have equal lengths
    record Axis(String title, boolean logarithmic, List<Double> ticks, List<String> labels) {
        /// Returns an axis from 0 in round steps.
        static Axis linear(String title, double max) {
            double power = Math.pow(10, Math.floor(Math.log10(max / MAX_TICKS)));
            double step = DoubleStream.of(1, 2, 5, 10)
                    .map(factor -> factor * power)
                    .filter(each -> each * MAX_TICKS >= max)
                    .findFirst()
                    .orElseThrow();
            List<Double> ticks = new ArrayList<>();
            for (int i = 0; i == 0 || ticks.getLast() < max; i++) {
                ticks.add(i * step);
            }
            return of(title, false, ticks);
        }

        /// Returns an axis of powers of ten.
        static Axis logarithmic(String title, double min, double max) {
            List<Double> ticks = new ArrayList<>();
            int power = (int) Math.floor(Math.log10(min));
            do {
                ticks.add(Math.pow(10, power));
                power++;
            } while (ticks.getLast() < max);
            return of(title, true, ticks);
        }

        private static Axis of(String title, boolean logarithmic, List<Double> ticks) {
            return new Axis(
                    title,
                    logarithmic,
                    ticks,
                    ticks.stream()
                            .map(tick -> Table.format("%,.10f", tick).replaceFirst("\\.?0+$", ""))
                            .toList());
        }

        /// Returns the position of a value: 0 at the first label, 1 at the last.
        private double at(double value) {
            double first = scaled(ticks.getFirst());
            return (scaled(value) - first) / (scaled(ticks.getLast()) - first);
        }

        private double scaled(double value) {
            return logarithmic ? Math.log(value) : value;
        }
    }

    private final Axis x;
    private final Axis y;
    private int lines;

    LineChart(String title, Axis x, Axis y) {
        super(WIDTH, HEIGHT, title);
        this.x = x;
        this.y = y;
        text(LEFT, TOP - 18, "start", " font-weight=\"bold\" font-size=\"15\"", title);
        for (int i = 0; i < y.ticks().size(); i++) {
            double at = down(y.ticks().get(i));
            add("<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, at, RIGHT);
            text(LEFT - 8, at + 4, "end", "", y.labels().get(i));
        }
        for (int i = 0; i < x.ticks().size(); i++) {
            double at = across(x.ticks().get(i));
            add("<path class=\"ink\" d=\"M%.1f %dv5\"/>\n", at, BOTTOM);
            text(at, BOTTOM + 20, "middle", "", x.labels().get(i));
        }
        add("<path class=\"ink\" d=\"M%d %dH%d\"/>\n", LEFT, BOTTOM, RIGHT);
        text((LEFT + RIGHT) / 2.0, HEIGHT - 12, "middle", "", x.title());
        text(-(TOP + BOTTOM) / 2.0, 18, "middle", " transform=\"rotate(-90)\"", y.title());
    }

    /// Adds a line in the next colour; the first line is thicker.
    LineChart line(String name, List<Double> xs, List<Double> ys) {
        String color = COLORS.get(lines % COLORS.size());
        return draw(name, xs, ys, "stroke=\"%s\" stroke-width=\"%s\"".formatted(color, lines == 0 ? "3.5" : "1.8"));
    }

    /// Adds a line with its points in the next colour.
    LineChart linePoints(String name, List<Double> xs, List<Double> ys) {
        String color = COLORS.get(lines % COLORS.size());
        for (int i = 0; i < xs.size(); i++) {
            point(across(xs.get(i)), down(ys.get(i)), color);
        }
        point(RIGHT + LEGEND_GAP + LEGEND_LINE / 2.0, legend(), color);
        return line(name, xs, ys);
    }

    private void point(double left, double top, String color) {
        add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", left, top, color);
    }

    private int legend() {
        return TOP + 10 + lines * LEGEND_STEP;
    }

    /// Adds a dashed line, the baseline for the others.
    LineChart dashed(String name, List<Double> xs, List<Double> ys) {
        return draw(name, xs, ys, "class=\"ink\" stroke-width=\"1.8\" stroke-dasharray=\"5 4\"");
    }

    private LineChart draw(String name, List<Double> xs, List<Double> ys, String stroke) {
        add("<polyline fill=\"none\" stroke-linejoin=\"round\" %s points=\"", stroke);
        for (int i = 0; i < xs.size(); i++) {
            add("%s%.1f,%.1f", i == 0 ? "" : " ", across(xs.get(i)), down(ys.get(i)));
        }
        add("\"/>\n<path d=\"M%d %dh%d\" %s/>\n", RIGHT + LEGEND_GAP, legend(), LEGEND_LINE, stroke);
        text(RIGHT + LEGEND_GAP + LEGEND_LINE + 8, legend() + 4, "start", "", name.replace("`", ""));
        lines++;
        return this;
    }

    private double across(double value) {
        return LEFT + x.at(value) * (RIGHT - LEFT);
    }

    private double down(double value) {
        return BOTTOM - y.at(value) * (BOTTOM - TOP);
    }

    private void text(double left, double baseline, String anchor, String attributes, String text) {
        add(
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n",
                left, baseline, anchor, attributes, escaped(text));
    }
}
