package io.cistern.benchmarks.waits;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/// How long one pass of a trace with fills takes on an H200 by a [model][BusyGpu], once a workload is at rest: with
/// allocators, and with [bytes alone][BytesAlone] of so many times the peak. It tells how much time an order between
/// streams costs, and how much of that the memory asks for.
///
/// Arguments: a trace file, then specs, or numbers for bytes alone. Prints a line of JSON for each.
///
/// ```
/// tools/benchmarks/java io.cistern.benchmarks.waits.FillsOnStreams vit_streams.csv.gz caching caching:reuse=never 1.08
/// 2
/// ```
public final class FillsOnStreams {
    private final List<TraceRow> rows;
    private final int streamCount;
    private final long peakBytes;

    private FillsOnStreams(List<TraceRow> rows) {
        this.rows = rows;
        this.streamCount = 1 + rows.stream().mapToInt(TraceRow::stream).max().orElse(0);
        this.peakBytes = peakBytes(rows);
    }

    /// Models all.
    ///
    /// @param arguments as above
    public static void main(String[] arguments) throws IOException {
        FillsOnStreams model = new FillsOnStreams(TraceRow.read(Path.of(arguments[0])));
        for (String what : List.of(arguments).subList(1, arguments.length)) {
            if (Character.isDigit(what.charAt(0))) {
                model.bytesAlone(Double.parseDouble(what));
            } else {
                model.allocator(what);
            }
        }
    }

    private static long peakBytes(List<TraceRow> rows) {
        long live = 0;
        long peak = 0;
        for (TraceRow row : rows) {
            live += row.allocates() ? row.byteSize() : -row.byteSize();
            peak = Math.max(peak, live);
        }
        return peak;
    }

    private void allocator(String spec) {
        try (ModelledReplay replay = new ModelledReplay(rows, streamCount, spec)) {
            ModelledReplay.Pass pass = replay.lastPass();
            print(spec, pass.nanos(), pass.driverCalls(), (double) pass.reservedBytes() / peakBytes);
        }
    }

    private void bytesAlone(double factor) {
        print("bytes alone", BytesAlone.nanos(rows, streamCount, (long) (peakBytes * factor)), 0, factor);
    }

    private static void print(String what, double nanos, long driverCalls, double ratio) {
        System.out.printf(
                Locale.ROOT,
                "{\"memory\":\"%s\",\"ratio\":%.3f,\"modelledMillis\":%.1f,\"driverCalls\":%d}%n",
                what,
                ratio,
                nanos / 1e6,
                driverCalls);
    }
}
