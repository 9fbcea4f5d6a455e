package io.cistern.cli;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/// The percentiles of what single pairs took, or in a hand-off single halves, with a look at the clock in each.
///
/// @param nanos one for each of [#PERCENTILES]
record BenchPercentiles(List<Double> nanos) {
    /// The median first; the last one has 20 pairs above it in the largest round.
    static final List<Double> PERCENTILES = List.of(50.0, 90.0, 99.0, 99.9, 99.99);

    private static final int P999 = PERCENTILES.indexOf(99.9);
    private static final String SEPARATOR = ",";

    /// Of what was taken, in any order.
    static BenchPercentiles of(long[] taken) {
        long[] sorted = taken.clone();
        Arrays.sort(sorted);
        return new BenchPercentiles(PERCENTILES.stream()
                .map(percentile -> (double) sorted[(int) (sorted.length * percentile / 100)])
                .toList());
    }

    /// The median over several JVMs, for each.
    static BenchPercentiles median(List<BenchPercentiles> jvms) {
        List<Double> medians = new ArrayList<>();
        for (int i = 0; i < PERCENTILES.size(); i++) {
            int at = i;
            medians.add(BenchResult.median(
                    jvms.stream().map(jvm -> jvm.nanos.get(at)).toList()));
        }
        return new BenchPercentiles(medians);
    }

    double p999() {
        return nanos.get(P999);
    }

    /// As results name one of them: `p50Nanos` to `p9999Nanos`.
    static String field(double percentile) {
        return "p" + String.valueOf(percentile).replace(".0", "").replace(".", "") + "Nanos";
    }

    /// As one cell of a line.
    String toCell() {
        return nanos.stream().map(String::valueOf).collect(Collectors.joining(SEPARATOR));
    }

    /// Reads what [#toCell] wrote.
    static BenchPercentiles parse(String cell) {
        return new BenchPercentiles(
                Arrays.stream(cell.split(SEPARATOR, -1)).map(Double::valueOf).toList());
    }
}
