package io.cistern.cli.replay;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.TextTable;
import io.cistern.cli.common.Work;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;
import java.util.stream.Collectors;

/// Formats replay results as a table for people, in 80 columns unless an allocator's spec is long.
final class ResultTable {
    private static final List<String> FAILURES = List.of("", "failures");

    private static final String TIMED = """
        Passes that warmed up the JVM ran before and are not reported.
        host: host time per allocation or free, median of the passes after the first.
        ms a pass: until the device is done; later: median of the later passes.
        """;
    private static final String COUNTED = """
        reserved: the allocator's peak of memory from the device; ratio: to the peak
        that the program requested. calls: to the CUDA driver, in a pass.
        """;
    private static final String SIMULATED = """
        Times are those of the simulation. With --format json, the field
        simulatedDriverMillis has the time that an H200's driver would take.
        """;

    private final List<ReplayResult> results;
    private final boolean anyFailed;
    private final String unit;
    private final double bytesOfUnit;

    private ResultTable(List<ReplayResult> results) {
        this.results = results;
        anyFailed = results.stream().anyMatch(result -> result.failures() > 0);
        long most = results.stream()
                .mapToLong(ReplayResult::reservedPeakBytes)
                .max()
                .orElse(0);
        unit = ByteSize.unit(most);
        bytesOfUnit = ByteSize.parse("1" + unit);
    }

    /// Returns the table with its explanation; it ends in a newline.
    static String format(List<ReplayResult> results) {
        return new ResultTable(results).table() + "\n" + explanation(results);
    }

    /// Makes one table, so that columns align, and puts a line with the trace's name above its rows.
    private String table() {
        List<String> lines = TextTable.format(
                        headings(), results.stream().map(this::row).toList(), 1)
                .lines()
                .toList();
        StringBuilder text = new StringBuilder();
        lines.subList(0, 2).forEach(line -> text.append(line).append('\n'));
        String trace = "";
        for (int i = 0; i < results.size(); i++) {
            ReplayResult result = results.get(i);
            if (!result.trace().equals(trace)) {
                trace = result.trace();
                text.append(trace)
                        .append(" (peak requested: ")
                        .append(ByteSize.format(result.requestedPeakBytes()))
                        .append(")\n");
            }
            text.append(lines.get(2 + i)).append('\n');
        }
        return text.toString();
    }

    private List<List<String>> headings() {
        List<List<String>> headings = List.of(
                new ArrayList<>(List.of("", "host", "ms a pass:", "", "reserved", "", "calls:", "")),
                new ArrayList<>(List.of("", "ns", "first", "later", unit, "ratio", "first", "last")));
        for (int i = 0; i < FAILURES.size() && anyFailed; i++) {
            headings.get(i).add(FAILURES.get(i));
        }
        return headings;
    }

    private List<String> row(ReplayResult result) {
        List<String> row = new ArrayList<>(List.of(
                "  " + result.session().spec() + (result.session().plan().layer() == Layer.RAW ? "" : " (buffers)"),
                number("%,.0f", result.nanosPerOperation()),
                number("%,.1f", result.firstPassMillis()),
                number("%,.1f", result.wallMillis()),
                result.knownReservedPeakBytes().isPresent()
                        ? String.format(Locale.ROOT, "%.2f", result.reservedPeakBytes() / bytesOfUnit)
                        : "-",
                number("%.3f", result.ratio()),
                String.format(Locale.ROOT, "%,d", result.firstPassDriverCalls()),
                String.format(Locale.ROOT, "%,d", result.driverCalls())));
        if (anyFailed) {
            row.add(String.format(Locale.ROOT, "%,d", result.failures()));
        }
        return row;
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
        return text.append(simulated ? SIMULATED : "")
                .append(played(results))
                .append(skippedRefusals(results))
                .toString();
    }

    private static String skippedRefusals(List<ReplayResult> results) {
        return results.stream()
                .filter(result -> result.session().trace().skippedRefusals() > 0)
                .map(result -> result.trace() + ": "
                        + String.format(
                                Locale.ROOT, "%,d", result.session().trace().skippedRefusals())
                        + (result.session().trace().skippedRefusals() == 1
                                ? " refused request is"
                                : " refused requests are")
                        + " not replayed: see cistern fit\n")
                .distinct()
                .collect(Collectors.joining());
    }

    /// Shows how many threads and devices took part, if the command line asked for them.
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
