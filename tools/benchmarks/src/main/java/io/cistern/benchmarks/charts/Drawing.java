package io.cistern.benchmarks.charts;

import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Font;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.DoubleSummaryStatistics;
import java.util.List;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.XYSeries;
import org.knowm.xchart.style.Styler;
import org.knowm.xchart.style.XYStyler;
import org.knowm.xchart.style.markers.SeriesMarkers;

/// The look that all charts share: white, few lines, colours that colour-blind people tell apart, a colour an
/// allocator.
final class Drawing {
    /// Enough for a screen of high density at half this size.
    private static final int DOTS_PER_INCH = 144;

    private static final int WIDTH = 1000;
    private static final int HEIGHT = 430;
    private static final Color INK = new Color(0x33, 0x33, 0x33);
    private static final Color GRID = new Color(0xe4, 0xe4, 0xe4);
    private static final float LINE = 1.8f;
    /// So that it can be seen under others.
    private static final float FIRST_LINE = 3.6f;
    /// A logarithmic axis has a label for each power of ten, so it wants some, and begins and ends with one.
    private static final double LOGARITHMIC_FROM = 20;

    /// By Okabe and Ito, without yellow, which is too light on white, and with brown and olive.
    private static final List<Color> COLORS = List.of(
            new Color(0x00, 0x72, 0xb2),
            new Color(0xd5, 0x5e, 0x00),
            new Color(0x00, 0x9e, 0x73),
            new Color(0xcc, 0x79, 0xa7),
            new Color(0xe6, 0x9f, 0x00),
            new Color(0x56, 0xb4, 0xe9),
            new Color(0x80, 0x80, 0x80),
            new Color(0x7a, 0x4a, 0x2a),
            new Color(0x6b, 0x6b, 0x00));

    private static final BasicStroke DASHED =
            new BasicStroke(LINE, BasicStroke.CAP_BUTT, BasicStroke.JOIN_ROUND, 1, new float[] {6, 4}, 0);

    private final XYChart chart;
    private int lines;

    Drawing(String title, String xTitle, String yTitle) {
        chart = new XYChartBuilder()
                .width(WIDTH)
                .height(HEIGHT)
                .title(title)
                .xAxisTitle(xTitle)
                .yAxisTitle(yTitle)
                .build();
        XYStyler style = chart.getStyler();
        style.setChartBackgroundColor(Color.WHITE);
        style.setPlotBackgroundColor(Color.WHITE);
        style.setPlotBorderVisible(false);
        style.setPlotGridLinesColor(GRID);
        style.setPlotGridLinesStroke(new BasicStroke(1));
        style.setPlotGridVerticalLinesVisible(false);
        style.setChartFontColor(INK);
        style.setAxisTickLabelsColor(INK);
        style.setChartTitleFont(new Font(Font.SANS_SERIF, Font.BOLD, 15));
        style.setAxisTitleFont(new Font(Font.SANS_SERIF, Font.PLAIN, 12));
        style.setAxisTickLabelsFont(new Font(Font.SANS_SERIF, Font.PLAIN, 12));
        style.setLegendFont(new Font(Font.SANS_SERIF, Font.PLAIN, 12));
        style.setLegendPosition(Styler.LegendPosition.OutsideE);
        style.setLegendBorderColor(Color.WHITE);
        style.setChartTitleBoxVisible(false);
        style.setXAxisDecimalPattern("#,##0.###");
        style.setYAxisDecimalPattern("#,##0.###");
        style.setYAxisMin(0.0);
    }

    XYStyler style() {
        return chart.getStyler();
    }

    /// Adds a line in the next colour, with points if asked for.
    Drawing line(String name, List<Double> x, List<Double> y, boolean points) {
        XYSeries series = add(name, x, y, COLORS.get(lines % COLORS.size()));
        series.setLineStyle(stroke(lines == 0 ? FIRST_LINE : LINE));
        lines++;
        series.setMarker(points ? SeriesMarkers.CIRCLE : SeriesMarkers.NONE);
        return this;
    }

    /// Adds points that no line connects.
    Drawing points(String name, List<Double> x, List<Double> y) {
        XYSeries series = add(name, x, y, INK);
        series.setXYSeriesRenderStyle(XYSeries.XYSeriesRenderStyle.Scatter);
        series.setMarker(SeriesMarkers.DIAMOND);
        return this;
    }

    /// Adds a line that the others are compared with.
    Drawing dashed(String name, List<Double> x, List<Double> y) {
        XYSeries series = add(name, x, y, INK);
        series.setLineStyle(DASHED);
        series.setMarker(SeriesMarkers.NONE);
        return this;
    }

    private XYSeries add(String name, List<Double> x, List<Double> y, Color color) {
        XYSeries series = chart.addSeries(name, x, y);
        series.setLineColor(color);
        series.setMarkerColor(color);
        return series;
    }

    private static BasicStroke stroke(float width) {
        return new BasicStroke(width, BasicStroke.CAP_BUTT, BasicStroke.JOIN_ROUND);
    }

    /// Gives the lines a logarithmic axis if they are far apart.
    Drawing scaled() {
        DoubleSummaryStatistics values = chart.getSeriesMap().values().stream()
                .flatMapToDouble(series -> Arrays.stream(series.getYData()))
                .summaryStatistics();
        if (values.getMax() > LOGARITHMIC_FROM * values.getMin()) {
            chart.getStyler().setYAxisLogarithmic(true);
            chart.getStyler().setYAxisMin(Math.pow(10, Math.floor(Math.log10(values.getMin()))));
            chart.getStyler().setYAxisMax(Math.pow(10, Math.ceil(Math.log10(values.getMax()))));
        }
        return this;
    }

    /// Writes it as `NAME.png`.
    void save(Path folder, String name) throws IOException {
        BitmapEncoder.saveBitmapWithDPI(
                chart, folder.resolve(name).toString(), BitmapEncoder.BitmapFormat.PNG, DOTS_PER_INCH);
    }
}
