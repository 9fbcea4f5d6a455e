package io.cistern.benchmarks.charts;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// What `cistern bench` measured (`bench*.jsonl`) beside what JMH measured of the same loads (`jmh-agreement*.csv`),
/// as a table.
///
/// | `cistern bench` | JMH |
/// |---|---|
/// | `pair` | `NettyBenchmark.cisternPair` |
/// | `mixed` | `NettyBenchmark.cisternMixed` |
/// | `handoff` | `HandoffBenchmark.handoff` |
/// | `scale`, `pair` and `exchange` | `LiveBlocksBenchmark.pair` and `.exchange` |
public final class MakeAgreement {
    private MakeAgreement() {}

    /// Argument: the raw folder.
    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 1) {
            System.err.println("usage: MakeAgreement RAW-FOLDER");
            System.exit(2);
        }
        Path raw = Path.of(arguments[0]);
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        List<Rows.Row> bench = Rows.json(raw, "bench.jsonl");
        out.println("| load | `cistern bench`, ns (lowest to highest round) | JMH, ns ± 99.9 % | bench / JMH |");
        out.println("|---|---|---|---|");
        for (Rows.Row jmh : Rows.csv(raw, "jmh-agreement*.csv")) {
            load(jmh).flatMap(load -> find(load, bench)).ifPresent(row -> out.println(line(row, jmh)));
        }
    }

    /// A load by the words of `cistern bench`.
    private record Load(String scenario, String variant, String byteSize, String liveBlocks) {
        boolean isOf(Rows.Row bench) {
            return bench.text("scenario").equals(scenario)
                    && bench.text("variant").equals(variant)
                    && (byteSize.isEmpty() || bench.text("byteSize").equals(byteSize))
                    && (liveBlocks.isEmpty() || bench.text("liveBlocks").equals(liveBlocks));
        }
    }

    private static Optional<Load> load(Rows.Row jmh) {
        String name = jmh.text("Benchmark");
        String byteSize = jmh.textOr("Param: byteSize", "");
        String liveBlocks = jmh.textOr("Param: liveBlocks", "");
        return Optional.ofNullable(
                switch (name.substring(name.lastIndexOf('.', name.lastIndexOf('.') - 1) + 1)) {
                    case "NettyBenchmark.cisternPair" -> new Load("pair", "pair", byteSize, "");
                    case "NettyBenchmark.cisternMixed" -> new Load("mixed", "exchange", "", "");
                    case "HandoffBenchmark.handoff" -> new Load("handoff", "handoff", "", "");
                    case "LiveBlocksBenchmark.pair" -> new Load("scale", "pair", "", liveBlocks);
                    case "LiveBlocksBenchmark.exchange" -> new Load("scale", "exchange", "", liveBlocks);
                    default -> null; // A part of a group.
                });
    }

    private static Optional<Rows.Row> find(Load load, List<Rows.Row> bench) {
        return bench.stream().filter(load::isOf).findFirst();
    }

    private static String line(Rows.Row bench, Rows.Row jmh) {
        double nanos = bench.number("nanosPerPair");
        double score = jmh.number("Score");
        return String.format(
                Locale.ROOT,
                "| %s, %s, largest %s B, %s live | %.1f (%.1f to %.1f) | %.1f ± %.1f | %.2f |",
                bench.text("scenario"),
                bench.text("variant"),
                bench.text("byteSize"),
                bench.text("liveBlocks"),
                nanos,
                bench.number("lowestNanosPerPair"),
                bench.number("highestNanosPerPair"),
                score,
                jmh.number("Score Error (99.9%)"),
                nanos / score);
    }
}
