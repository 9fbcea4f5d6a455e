package io.cistern.cli;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// One line of the report: a case through an allocator, over all JVMs that measured it.
///
/// @param allocator its spec
/// @param device where
/// @param rows what each JVM measured; at least one
record BenchResult(String allocator, String device, List<BenchRow> rows) {
    private static final double NANOS_PER_SECOND = 1e9;

    /// The case.
    BenchCase measured() {
        return rows.getFirst().measured();
    }

    /// The rounds of all JVMs.
    List<Double> rounds() {
        return rows.stream().flatMap(row -> row.nanosPerPair().stream()).toList();
    }

    /// The median over the rounds.
    double nanosPerPair() {
        return median(rounds());
    }

    /// Of all threads together.
    double pairsPerSecond() {
        return NANOS_PER_SECOND * measured().pairMakers() / nanosPerPair();
    }

    /// The median over the JVMs.
    BenchPercentiles percentiles() {
        return BenchPercentiles.median(rows.stream().map(BenchRow::percentiles).toList());
    }

    /// What two looks at the clock leave in each pair that is timed alone.
    double clockNanos() {
        return median(rows.stream().map(row -> (double) row.clockNanos()).toList());
    }

    /// The median over the JVMs.
    double garbageBytesPerPair() {
        return median(rows.stream().map(BenchRow::garbageBytesPerPair).toList());
    }

    /// What the queue of a hand-off costs by itself; else not a number.
    double queueNanos() {
        return median(rows.stream().map(BenchRow::queueNanos).toList());
    }

    /// As one line of JSON; what does not apply is null.
    String toJson() {
        BenchCase measured = measured();
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("scenario", measured.scenario().label());
        fields.put("variant", measured.variant().label());
        fields.put("allocator", allocator);
        fields.put("device", device);
        fields.put("threads", measured.threads());
        fields.put("byteSize", measured.byteSize());
        fields.put("liveBlocks", measured.liveBlocks());
        fields.put("nanosPerPair", nanosPerPair());
        fields.put("lowestNanosPerPair", Collections.min(rounds()));
        fields.put("highestNanosPerPair", Collections.max(rounds()));
        fields.put("rounds", rounds().size());
        fields.put("forks", rows.size());
        fields.put("pairsPerSecond", pairsPerSecond());
        BenchPercentiles percentiles = percentiles();
        for (int i = 0; i < BenchPercentiles.PERCENTILES.size(); i++) {
            fields.put(
                    BenchPercentiles.field(BenchPercentiles.PERCENTILES.get(i)),
                    percentiles.nanos().get(i));
        }
        fields.put("clockNanos", clockNanos());
        fields.put("garbageBytesPerPair", garbageBytesPerPair());
        fields.put("queueNanosPerPair", queueNanos());
        fields.put("collector", rows.getFirst().collector());
        return Json.write(fields);
    }

    /// The middle one of some numbers, or the mean of the two in the middle.
    static double median(List<Double> values) {
        List<Double> sorted = values.stream().sorted().toList();
        int size = sorted.size();
        return (sorted.get((size - 1) / 2) + sorted.get(size / 2)) / 2;
    }
}
