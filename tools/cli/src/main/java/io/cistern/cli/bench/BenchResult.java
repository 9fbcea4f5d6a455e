package io.cistern.cli.bench;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// One line of the report: JMH's measurements of one case through one allocator.
///
/// @param measured the case
/// @param allocator its spec
/// @param device the label of the device
/// @param forks how many JVMs measured it
/// @param rounds nanoseconds a pair in each round of each JVM, of one thread
/// @param percentiles nanoseconds of single pairs, one for each of [#PERCENTILES]
/// @param clockNanos the clock's own cost, in nanoseconds, in each pair that is timed alone
/// @param garbageBytesPerPair bytes of Java heap that a pair allocated
/// @param queueNanos nanoseconds that the queue of a hand-off costs by itself; NaN for other cases
/// @param collector the garbage collector of the JVM
record BenchResult(
        BenchCase measured,
        String allocator,
        String device,
        int forks,
        List<Double> rounds,
        List<Double> percentiles,
        double clockNanos,
        double garbageBytesPerPair,
        double queueNanos,
        String collector) {
    static final List<Double> PERCENTILES = List.of(50.0, 90.0, 99.0, 99.9, 99.99);

    private static final double NANOS_PER_SECOND = 1e9;

    /// Returns the median over the rounds.
    double nanosPerPair() {
        return median(rounds());
    }

    /// Returns the pairs per second of all threads together.
    double pairsPerSecond() {
        return NANOS_PER_SECOND * measured().pairMakers() / nanosPerPair();
    }

    double p999() {
        return percentiles.get(PERCENTILES.indexOf(99.9));
    }

    /// Returns the fields of a JSON object; a field that does not apply is null.
    Map<String, @Nullable Object> fields() {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("scenario", measured.scenario().label());
        fields.put("variant", measured.variant().label());
        fields.put("allocator", allocator);
        fields.put("device", device);
        fields.put("threads", measured.threads());
        fields.put("byteSize", measured.byteSize());
        fields.put("liveBlocks", measured.liveBlocks());
        fields.put("nanosPerPair", nanosPerPair());
        fields.put("lowestNanosPerPair", Collections.min(rounds));
        fields.put("highestNanosPerPair", Collections.max(rounds));
        fields.put("rounds", rounds.size());
        fields.put("forks", forks);
        fields.put("pairsPerSecond", pairsPerSecond());
        for (int i = 0; i < PERCENTILES.size(); i++) {
            fields.put(field(PERCENTILES.get(i)), percentiles.get(i));
        }
        fields.put("clockNanos", clockNanos);
        fields.put("garbageBytesPerPair", garbageBytesPerPair);
        fields.put("queueNanosPerPair", Double.isNaN(queueNanos) ? null : queueNanos);
        fields.put("collector", collector);
        return fields;
    }

    /// Returns the name of a percentile's field: `p50Nanos` to `p9999Nanos`.
    static String field(double percentile) {
        return "p" + String.valueOf(percentile).replace(".0", "").replace(".", "") + "Nanos";
    }

    /// Returns the middle value, or the mean of the two middle values.
    static double median(List<Double> values) {
        List<Double> sorted = values.stream().sorted().toList();
        int size = sorted.size();
        return (sorted.get((size - 1) / 2) + sorted.get(size / 2)) / 2;
    }
}
