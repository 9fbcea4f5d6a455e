package io.cistern.benchmarks.figures;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The iterations behind a JMH table, from the log beside it, in the order of its rows: their median is a
/// figure also on a host where others work, on which the mean is not.
final class JmhLog {
    private static final Pattern ITERATION = Pattern.compile("Iteration +\\d+: ([\\d.]+) .*");

    private final Iterator<List<Double>> benchmarks;

    /// @param file the log; one that is not there has no iterations
    JmhLog(Path file) throws IOException {
        List<List<Double>> all = new ArrayList<>();
        String which = "";
        String last = "";
        for (String line : Files.exists(file) ? Files.readAllLines(file) : List.<String>of()) {
            Matcher iteration = ITERATION.matcher(line);
            if (line.startsWith("# Benchmark: ")) {
                which = line;
            } else if (line.startsWith("# Parameters: ")) {
                which += line;
            } else if (iteration.matches()) {
                if (!which.equals(last)) { // Not another fork of the same one.
                    all.add(new ArrayList<>());
                    last = which;
                }
                all.getLast().add(Double.valueOf(iteration.group(1)));
            }
        }
        benchmarks = all.iterator();
    }

    /// Those of the next row, in ascending order; empty if the log has none.
    List<Double> next() {
        return benchmarks.hasNext() ? benchmarks.next().stream().sorted().toList() : List.of();
    }
}
