package io.cistern.benchmarks.figures;

import io.cistern.benchmarks.Samples;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// Makes the table of handles: their cost against PyTorch's.
final class HandleFigures {
    private static final String FILE = "handles.txt";
    private static final String LOADS = "handle-loads.jsonl";
    private static final Pattern MEDIAN = Pattern.compile("(.*): ([\\d.]+)(?: \\(.*|)");
    private static final Pattern JMH = Pattern.compile("HandleBenchmark\\.(\\w+) .* avgt +\\d+ +([\\d.]+) .*");

    private final Table table = new Table("", "Cistern", "PyTorch 2.11", "C++, cuBLAS alone");
    private final Map<String, List<Double>> medians = new LinkedHashMap<>();

    /// Reads the medians of each turn, by the name of the measurement; of several passes in a turn the last one counts.
    private HandleFigures(RawOutput raw) {
        Map<String, Map<String, Double>> turns = new LinkedHashMap<>();
        String section = "";
        for (String line : raw.lines(FILE)) {
            section = line.startsWith("== ") ? line : section;
            Matcher jmh = JMH.matcher(line);
            Matcher median = MEDIAN.matcher(line);
            Map<String, Double> turn = turns.computeIfAbsent(section, _ -> new LinkedHashMap<>());
            if (jmh.matches()) {
                String threads = section.replaceFirst(".*cuBLAS, (\\d+) threads.*", "$1");
                turn.put(jmh.group(1) + " " + threads, Double.parseDouble(jmh.group(2)));
            } else if (median.matches()) {
                turn.put(median.group(1), Double.parseDouble(median.group(2)));
            }
        }
        turns.values()
                .forEach(turn -> turn.forEach((what, value) ->
                        medians.computeIfAbsent(what, _ -> new ArrayList<>()).add(value)));
    }

    static String costs(RawOutput raw) {
        HandleFigures figures = new HandleFigures(raw);
        for (int threads : new int[] {1, 16}) {
            figures.row(
                    "ns, stream set already, " + threads + (threads == 1 ? " thread" : " threads"),
                    "sameStream " + threads,
                    "",
                    "");
        }
        figures.row(
                "ns, stream and workspace set again, 1 thread",
                "otherStream 1",
                "torch getCurrentCUDABlasHandle ns a call, 1 threads",
                "");
        figures.row("µs to create one", "create a handle", "", "cublasCreate us");
        figures.row("µs to destroy one", "destroy a handle", "", "cublasDestroy us");
        figures.row(
                "µs to create one in each of 16 threads",
                "create a handle, 16 threads at once, each",
                "",
                "cublasCreate from 16 threads at once, each us");
        figures.row("µs for a thread without a handle", "a thread alone", "", "a thread alone us");
        figures.row(
                "µs for one with a shared handle",
                "a thread with a handle, SHARED",
                "a thread with PyTorch's handle us",
                "");
        figures.row(
                "µs for one with a handle of its own",
                "a thread with a handle, PER_THREAD",
                "",
                "a thread that creates and destroys us");
        figures.row("MiB of the device for each handle, without a workspace", "", "", "MiB of the device for a handle");
        return figures.table.with(
                "The lowest and the highest median of two turns; of a turn's passes the last, since the first ones warm up."
                        + " PyTorch is called from C++; it sets stream and workspace in each call. ",
                raw,
                FILE);
    }

    private void row(String what, String cistern, String torch, String c) {
        table.row(what, range(cistern), range(torch), range(c));
    }

    private String range(String what) {
        return what.isEmpty() ? "" : Table.range(new Samples(medians.getOrDefault(what, List.of())), Table::rounded);
    }

    /// Returns which threads of PyTorch programs have handles: ranges over the runs of each load.
    static String loads(RawOutput raw) {
        List<Row> rows = Row.where(raw.json(LOADS), "what", "sums");
        Table table = new Table(
                "program", "threads with a handle", "of these ended", "handles created", "that served a later thread");
        rows.stream().map(row -> row.text("load")).distinct().forEach(load -> {
            List<Row> runs = Row.where(rows, "load", load);
            table.row(Stream.concat(
                            Stream.of("`" + load + "`"),
                            Stream.of("threadsWithHandle", "ofThemEnded", "created", "servedAnotherThread")
                                    .map(field -> Table.range(
                                            Row.samples(runs, field), value -> Table.format("%,.0f", value))))
                    .toList());
        });
        return table.with("From two or three runs; a range if they differ. ", raw, LOADS);
    }
}
