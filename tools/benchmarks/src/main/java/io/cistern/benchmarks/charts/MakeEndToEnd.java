package io.cistern.benchmarks.charts;

import java.awt.Color;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.CategoryChart;
import org.knowm.xchart.CategoryChartBuilder;
import org.knowm.xchart.style.CategoryStyler;
import org.knowm.xchart.style.Styler;

/// What whole jobs gain from leaving `cudaMalloc`: the time of each trace with `direct`, with `async` under each
/// release threshold, and with `caching`, as a table and as a chart. `tools/benchmarks/end-to-end` draws the chart.
///
/// Reads `threshold-replay.jsonl`: replays with `--work memset`, which fill each block when it is allocated and wait
/// for the device after each pass.
public final class MakeEndToEnd {
    private static final String DIRECT = "direct";
    private static final String THRESHOLD = "async:release_threshold=";
    private static final int WIDTH = 1000;
    private static final int HEIGHT = 430;
    private static final int DOTS_PER_INCH = 144;

    private MakeEndToEnd() {}

    /// Arguments: the raw folder, the folder of the charts.
    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 2) {
            System.err.println("usage: MakeEndToEnd RAW-FOLDER CHARTS-FOLDER");
            System.exit(2);
        }
        Map<String, Map<String, Double>> millis = millis(Rows.json(Path.of(arguments[0]), "threshold-replay.jsonl"));
        chart(millis, Files.createDirectories(Path.of(arguments[1])));
    }

    /// By trace and allocator; all traces have the same allocators, `direct` first.
    public static Map<String, Map<String, Double>> millis(List<Rows.Row> rows) {
        Map<String, Map<String, Double>> millis = new LinkedHashMap<>();
        for (Rows.Row row : rows) {
            if (row.text("work").equals("memset")) {
                millis.computeIfAbsent(row.text("trace"), _ -> new LinkedHashMap<>())
                        .put(row.text("allocator"), row.number("wallMillis"));
            }
        }
        return millis;
    }

    private static List<String> allocators(Map<String, Map<String, Double>> millis) {
        Set<String> names = new LinkedHashSet<>(List.of(DIRECT));
        millis.values().forEach(times -> names.addAll(times.keySet()));
        return List.copyOf(names);
    }

    private static double time(Map<String, Double> times, String allocator) {
        return Objects.requireNonNull(times.get(allocator), () -> "no replay with " + allocator);
    }

    private static String name(String allocator) {
        return allocator.replace(THRESHOLD, "async ");
    }

    /// Milliseconds a pass, and how many times as fast as `direct`.
    public static String table(Map<String, Map<String, Double>> millis) {
        List<String> allocators = allocators(millis);
        StringBuilder table = new StringBuilder("| ms a pass |");
        allocators.forEach(
                allocator -> table.append(" `").append(name(allocator)).append("` |"));
        table.append("\n|---|").append("---|".repeat(allocators.size())).append('\n');
        millis.forEach((trace, times) -> {
            table.append("| ").append(trace).append(" |");
            allocators.forEach(allocator -> table.append(
                    String.format(Locale.ROOT, " %.1f (%.1f ×) |", time(times, allocator), gain(times, allocator))));
            table.append('\n');
        });
        table.append("| geometric mean of the gains |");
        allocators.forEach(allocator -> {
            double mean = millis.values().stream()
                    .collect(Collectors.averagingDouble(times -> Math.log(gain(times, allocator))));
            table.append(String.format(Locale.ROOT, " %.1f × |", Math.exp(mean)));
        });
        return table.append('\n').toString();
    }

    /// How many times as fast as `direct`.
    private static double gain(Map<String, Double> times, String allocator) {
        return time(times, DIRECT) / time(times, allocator);
    }

    private static void chart(Map<String, Map<String, Double>> millis, Path charts) throws IOException {
        CategoryChart chart = new CategoryChartBuilder()
                .width(WIDTH)
                .height(HEIGHT)
                .title("Traces with memory filled, H200: times as fast as cudaMalloc")
                .yAxisTitle("times as fast as direct")
                .build();
        CategoryStyler style = chart.getStyler();
        style.setYAxisMin(0.0);
        style.setAvailableSpaceFill(0.85);
        style.setChartBackgroundColor(Color.WHITE);
        style.setPlotBackgroundColor(Color.WHITE);
        style.setPlotBorderVisible(false);
        style.setChartTitleBoxVisible(false);
        style.setLegendBorderColor(Color.WHITE);
        style.setLegendPosition(Styler.LegendPosition.OutsideE);
        style.setSeriesColors(colors());
        List<String> traces = new ArrayList<>(millis.keySet());
        for (String allocator : allocators(millis)) {
            if (!allocator.equals(DIRECT)) {
                List<Double> gains = millis.values().stream()
                        .map(times -> gain(times, allocator))
                        .toList();
                chart.addSeries(name(allocator), traces, gains);
            }
        }
        BitmapEncoder.saveBitmapWithDPI(
                chart, charts.resolve("end-to-end").toString(), BitmapEncoder.BitmapFormat.PNG, DOTS_PER_INCH);
    }

    /// Fixed thresholds from light to dark, then two of their own.
    private static Color[] colors() {
        return new Color[] {
            new Color(0xd0, 0xe3, 0xf0),
            new Color(0xa6, 0xc8, 0xe0),
            new Color(0x7b, 0xad, 0xd0),
            new Color(0x4a, 0x8f, 0xbf),
            new Color(0x00, 0x72, 0xb2),
            new Color(0xd5, 0x5e, 0x00),
            new Color(0x33, 0x33, 0x33)
        };
    }
}
