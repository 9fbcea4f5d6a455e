package io.cistern.cli;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/// What one JVM measured of a case, as it tells the JVM that started it.
///
/// @param measured the case
/// @param nanosPerPair of each round: its time over the pairs that one thread made
/// @param percentiles of single pairs
/// @param clockNanos what the look at the clock in each of those costs
/// @param garbageBytesPerPair what a pair took of the Java heap
/// @param queueNanos what the queue of a hand-off costs by itself; else not a number
/// @param collector the garbage collector
record BenchRow(
        BenchCase measured,
        List<Double> nanosPerPair,
        BenchPercentiles percentiles,
        long clockNanos,
        double garbageBytesPerPair,
        double queueNanos,
        String collector) {
    private static final String MARK = "row";
    private static final String SEPARATOR = "\t";

    /// As one line.
    String toLine() {
        String rounds = nanosPerPair.stream().map(String::valueOf).collect(Collectors.joining(","));
        return String.join(
                SEPARATOR,
                MARK,
                measured.scenario().name(),
                measured.variant().name(),
                String.valueOf(measured.threads()),
                String.valueOf(measured.byteSize()),
                String.valueOf(measured.liveBlocks()),
                rounds,
                percentiles.toCell(),
                String.valueOf(clockNanos),
                String.valueOf(garbageBytesPerPair),
                String.valueOf(queueNanos),
                collector);
    }

    /// Which case it is and what a pair took, for people.
    String label() {
        return measured.label() + ": " + BenchTable.nanos(BenchResult.median(nanosPerPair)) + " ns a pair";
    }

    /// Whether a line is one, and not something that a plug-in printed.
    static boolean isRow(String line) {
        return line.startsWith(MARK + SEPARATOR);
    }

    /// Reads what [#toLine] wrote.
    static BenchRow parse(String line) {
        String[] cells = line.split(SEPARATOR, -1);
        return new BenchRow(
                new BenchCase(
                        BenchScenario.valueOf(cells[1]),
                        BenchCase.Variant.valueOf(cells[2]),
                        Integer.parseInt(cells[3]),
                        Long.parseLong(cells[4]),
                        Integer.parseInt(cells[5])),
                Arrays.stream(cells[6].split(",", -1)).map(Double::valueOf).toList(),
                BenchPercentiles.parse(cells[7]),
                Long.parseLong(cells[8]),
                Double.parseDouble(cells[9]),
                Double.parseDouble(cells[10]),
                cells[11]);
    }
}
