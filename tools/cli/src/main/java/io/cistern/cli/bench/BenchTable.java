package io.cistern.cli.bench;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.TextTable;
import java.util.Collections;
import java.util.List;
import java.util.Locale;

/// Formats measured results as a table for people.
final class BenchTable {
    private static final List<List<String>> HEADINGS = List.of(
            List.of("", "", "", "", "largest", "live", "ns/pair", "", "", "million", "p99.9", "garbage"),
            List.of(
                    "scenario",
                    "each thread",
                    "allocator",
                    "threads",
                    "block",
                    "blocks",
                    "median",
                    "lowest",
                    "highest",
                    "pairs/s",
                    "ns",
                    "B/pair"));
    private static final int LEFT_ALIGNED = 3;

    private static final String METHOD = """
        A pair is one allocation and one free, by one thread; pairs/s is all threads' together. Sizes are random, over half of
        the largest (mixed and exchange: of all magnitudes). lowest, highest: of the rounds.
        """;
    private static final String SIMULATED = """
        On a simulated GPU the driver takes virtual time: the figures are the cost of Cistern, and of simulating where an
        allocator calls the driver (direct, async).
        """;

    private BenchTable() {}

    /// Returns the table with its explanation; it ends in a newline.
    static String format(List<BenchResult> results) {
        List<List<String>> rows = results.stream().map(BenchTable::row).toList();
        return TextTable.format(HEADINGS, rows, LEFT_ALIGNED) + "\n" + explanation(results);
    }

    private static List<String> row(BenchResult result) {
        BenchCase measured = result.measured();
        List<Double> rounds = result.rounds();
        return List.of(
                measured.scenario().label(),
                measured.variant().label(),
                result.allocator(),
                String.valueOf(measured.threads()),
                ByteSize.format(measured.byteSize()),
                String.format(Locale.ROOT, "%,d", measured.liveBlocks()),
                nanos(result.nanosPerPair()),
                nanos(Collections.min(rounds)),
                nanos(Collections.max(rounds)),
                String.format(Locale.ROOT, "%,.3f", result.pairsPerSecond() / 1e6),
                String.format(Locale.ROOT, "%,.0f", result.p999()),
                String.format(Locale.ROOT, "%.1f", result.garbageBytesPerPair()));
    }

    /// Formats nanoseconds for the table.
    static String nanos(double nanos) {
        return String.format(Locale.ROOT, nanos < 1000 ? "%.1f" : "%,.0f", nanos);
    }

    private static String explanation(List<BenchResult> results) {
        BenchResult any = results.getFirst();
        StringBuilder text = new StringBuilder();
        text.append(String.format(
                Locale.ROOT,
                "On %s, %d %s in %s, collector %s.%n",
                any.device().equals("simulated") ? "a simulated GPU" : any.device(),
                any.rounds().size(),
                any.rounds().size() == 1 ? "round" : "rounds",
                any.forks() == 1 ? "a JVM for each line" : any.forks() + " JVMs",
                any.collector()));
        text.append(METHOD);
        text.append(String.format(
                Locale.ROOT,
                "p99.9: from a round of its own that times each pair alone (hand-off: each half), %.0f ns of it the"
                        + " clock's.%n",
                any.clockNanos()));
        results.stream()
                .filter(result -> !Double.isNaN(result.queueNanos()))
                .findFirst()
                .ifPresent(result -> text.append(String.format(
                        Locale.ROOT, "The queue of the hand-off by itself: %.1f ns a block.%n", result.queueNanos())));
        return text.append(any.device().equals("simulated") ? SIMULATED : "").toString();
    }
}
