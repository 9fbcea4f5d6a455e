package io.cistern.cli.replay;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.PoolFigures;
import io.cistern.cli.common.TextTable;
import io.cistern.cli.common.Work;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;
import java.util.stream.Collectors;

/// Formats replay results as a table for people.
final class ResultTable {
    /// Two lines of headings, so that a row fits a terminal of 120 columns.
    private static final List<String> UPPER_HEADINGS = List.of(
            "", "", "host", "wall", "1st pass", "requested", "reserved", "reserved", "calls in", "calls in", "");

    private static final List<String> HEADINGS = List.of(
            "trace",
            "allocator",
            "ns/op",
            "ms/pass",
            "ms",
            "peak",
            "peak",
            "/requested",
            "first pass",
            "last pass",
            "failures");

    private static final List<String> POOL_HEADINGS =
            List.of("trace", "allocator", "threshold", "reserved", "used", "trims", "trimmed");
    private static final int LEFT_ALIGNED = 2;

    private static final String TIMED = """
        host ns/op: the host's time for each allocation or free. wall ms/pass: a whole pass, until the device is done.
        Both are the median of the passes after the first.
        """;
    private static final String COUNTED = """
        requested: bytes that the program asked for. reserved: what the allocator took from the device for them.
        calls: what the allocator asked of the CUDA driver, in its first pass and once it is warm.
        """;
    private static final String SIMULATED = """
        The times hold what simulating the calls took; what an H200's driver would take for them is simulatedDriverMillis
        of --format json.
        """;

    private ResultTable() {}

    /// Returns the table with its explanation; it ends in a newline.
    static String format(List<ReplayResult> results) {
        List<List<String>> rows = results.stream().map(ResultTable::row).toList();
        return TextTable.format(List.of(UPPER_HEADINGS, HEADINGS), rows, LEFT_ALIGNED) + "\n" + explanation(results)
                + pools(results);
    }

    /// Describes the driver's pools after the last pass, for allocators over them.
    private static String pools(List<ReplayResult> results) {
        List<List<String>> rows = results.stream()
                .flatMap(result -> result.outcome().pools().stream().map(pools -> row(result, pools)))
                .toList();
        return rows.isEmpty()
                ? ""
                : "\nThe driver's pools after the last pass:\n"
                        + TextTable.format(List.of(POOL_HEADINGS), rows, LEFT_ALIGNED);
    }

    private static List<String> row(ReplayResult result, PoolFigures pools) {
        return List.of(
                result.trace(),
                result.allocator(),
                pools.threshold(),
                ByteSize.format(pools.reservedBytes()),
                ByteSize.format(pools.usedBytes()),
                String.format(Locale.ROOT, "%,d", pools.trims()),
                ByteSize.format(pools.trimmedBytes()));
    }

    private static List<String> row(ReplayResult result) {
        return List.of(
                result.trace(),
                result.layer() == Layer.RAW ? result.allocator() : result.allocator() + " (buffers)",
                number("%,.0f", result.nanosPerOperation()),
                number("%,.1f", result.wallMillis()),
                number("%,.1f", result.firstPassMillis()),
                ByteSize.format(result.requestedPeakBytes()),
                result.knownReservedPeakBytes().isPresent() ? ByteSize.format(result.reservedPeakBytes()) : "-",
                number("%.3f", result.ratio()),
                String.format(Locale.ROOT, "%,d", result.firstPassDriverCalls()),
                String.format(Locale.ROOT, "%,d", result.driverCalls()),
                String.format(Locale.ROOT, "%,d", result.failures()));
    }

    private static String explanation(List<ReplayResult> results) {
        ReplayResult any = results.getFirst();
        int passes = any.outcome().passes().size();
        boolean simulated = any.device().equals("simulated");
        StringBuilder text = new StringBuilder();
        text.append(simulated ? "On a simulated GPU, " : "On " + any.device() + ", ");
        text.append(passes).append(passes == 1 ? " pass.\n" : " passes.\n");
        text.append(any.work() == Work.CHECK ? untimed(results) : TIMED);
        text.append(COUNTED);
        return text.append(simulated ? SIMULATED : "").append(played(results)).toString();
    }

    /// Tells how many threads and devices took part, if anybody asked for them.
    private static String played(List<ReplayResult> results) {
        return results.stream()
                .filter(result -> !result.played().isEmpty())
                .map(result -> "Played " + result.trace() + ": "
                        + result.played().entrySet().stream()
                                .map(each -> each.getKey() + " " + each.getValue())
                                .collect(Collectors.joining(", "))
                        + ".\n")
                .distinct()
                .collect(Collectors.joining());
    }

    private static String untimed(List<ReplayResult> results) {
        long mismatches = results.stream()
                .mapToLong(result -> result.outcome().mismatches())
                .sum();
        return "Contents were verified, so nothing was timed; words found changed: " + mismatches + ".\n";
    }

    private static String number(String format, OptionalDouble value) {
        return value.isPresent() ? String.format(Locale.ROOT, format, value.getAsDouble()) : "-";
    }
}
