package io.cistern.benchmarks.charts;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// Draws the charts of `docs/charts` from raw measurements. `tools/benchmarks/charts` runs it.
///
/// | files in the raw folder | charts |
/// |---|---|
/// | `series*.csv` | `reserved-TRACE.png`: reserved against requested over time |
/// | `bench{,-peers}.jsonl` | `pair.png`, `live.png`, `threads.png`: what a pair costs by size and live blocks, scaling
/// |
/// | the same | `pair-latency.png`, `pair-p999.png`: the distribution of single pairs |
/// | `latency.jsonl` | `latency.png`, `launch-latency.png`: percentiles beside a neighbour that grows and trims |
/// | `thresholds.jsonl` | `threshold-WORKLOAD.png`: time against bytes held by release threshold |
///
/// What has no files has no chart.
public final class MakeCharts {
    private MakeCharts() {}

    /// Arguments: the raw folder, the folder of the charts.
    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 2) {
            System.err.println("usage: MakeCharts RAW-FOLDER CHARTS-FOLDER");
            System.exit(2);
        }
        Path raw = Path.of(arguments[0]);
        Path charts = Files.createDirectories(Path.of(arguments[1]));
        ReservedCharts.draw(raw, charts);
        BenchCharts.draw(raw, charts);
        LatencyCharts.draw(raw, charts);
        ThresholdCharts.draw(raw, charts);
    }
}
