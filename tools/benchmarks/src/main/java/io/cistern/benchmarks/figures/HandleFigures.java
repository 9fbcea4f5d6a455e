package io.cistern.benchmarks.figures;

import io.cistern.benchmarks.figures.LineChart.Axis;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Makes tables and a chart of handles: their cost beside PyTorch's, and the lives of threads
/// in common programs.
final class HandleFigures {
    private static final String COSTS = "handles.txt";
    private static final String THREADS = "handle-threads.csv";
    private static final String LOADS = "handle-loads.jsonl";
    private static final Pattern MEDIAN = Pattern.compile("(.*): ([\\d.]+)(?: \\(.*|)");
    private static final Pattern JMH = Pattern.compile("HandleBenchmark\\.(\\w+) .* avgt +\\d+ +([\\d.]+) .*");

    private HandleFigures() {}

    /// Returns the medians of each turn, by the name of the measurement; of several passes in a turn, the
    /// last one counts.
    private static Map<String, List<Double>> medians(RawOutput raw) {
        Map<String, Map<String, Double>> bySection = new LinkedHashMap<>();
        String section = "";
        for (String line : raw.lines(COSTS)) {
            section = line.startsWith("== ") ? line : section;
            Matcher jmh = JMH.matcher(line);
            Matcher median = MEDIAN.matcher(line);
            if (jmh.matches()) {
                String threads = section.replaceFirst(".*cuBLAS, (\\d+) threads.*", "$1");
                put(bySection, section, jmh.group(1) + " " + threads, jmh.group(2));
            } else if (median.matches()) {
                put(bySection, section, median.group(1), median.group(2));
            }
        }
        Map<String, List<Double>> all = new LinkedHashMap<>();
        bySection
                .values()
                .forEach(turn -> turn.forEach((what, value) ->
                        all.computeIfAbsent(what, _ -> new ArrayList<>()).add(value)));
        return all;
    }

    private static void put(Map<String, Map<String, Double>> sections, String section, String what, String value) {
        sections.computeIfAbsent(section, _ -> new LinkedHashMap<>()).put(what, Double.parseDouble(value));
    }

    static String costs(RawOutput raw) {
        Map<String, List<Double>> medians = medians(raw);
        Table table = new Table(List.of("", "Cistern", "PyTorch 2.11", "C++, cuBLAS alone"));
        for (int threads : new int[] {1, 4, 16}) {
            table.row(List.of(
                    "ns for the handle, its stream set already, " + threads + (threads == 1 ? " thread" : " threads"),
                    range(medians, "sameStream " + threads),
                    range(medians, "torch getCurrentCUDABlasHandle ns a call, " + threads + " threads"),
                    ""));
        }
        table.row(List.of(
                "ns, another stream each time, with its workspace, 1 thread", range(medians, "otherStream 1"), "", ""));
        table.row(
                List.of("µs to create one", range(medians, "create a handle"), "", range(medians, "cublasCreate us")));
        table.row(List.of(
                "µs to destroy one", range(medians, "destroy a handle"), "", range(medians, "cublasDestroy us")));
        table.row(List.of(
                "µs until 16 threads have created one each, divided by 16",
                range(medians, "create a handle, 16 threads at once, each"),
                "",
                range(medians, "cublasCreate from 16 threads at once, each us")));
        table.row(List.of(
                "µs for a thread that comes and ends, without a handle",
                range(medians, "a thread alone"),
                "",
                range(medians, "a thread alone us")));
        table.row(List.of(
                "µs for the same with a handle, shared",
                range(medians, "a thread with a handle, SHARED"),
                range(medians, "a thread with PyTorch's handle us"),
                ""));
        table.row(List.of(
                "µs for the same with a handle of its own",
                range(medians, "a thread with a handle, PER_THREAD"),
                "",
                range(medians, "a thread that creates and destroys us")));
        table.row(List.of(
                "MiB of the device for each more handle, without a workspace",
                "",
                "",
                range(medians, "MiB of the device for a handle")));
        return table
                + "\nThe lowest and the highest median of two turns; of a turn's passes the last, since the first ones warm up."
                + " PyTorch is called from C++, and sets stream and workspace in each call. " + raw.source(COSTS)
                + ".\n";
    }

    private static String range(Map<String, List<Double>> medians, String what) {
        List<Double> values = medians.getOrDefault(what, List.of());
        double min = values.stream().mapToDouble(Double::doubleValue).min().orElseThrow();
        double max = values.stream().mapToDouble(Double::doubleValue).max().orElseThrow();
        String low = Table.rounded(min);
        String high = Table.rounded(max);
        return low.equals(high) ? low : low + " to " + high;
    }

    static String threads(RawOutput raw) {
        List<Rows.Row> rows = raw.csv(THREADS);
        Table table = new Table(List.of(
                "threads",
                "tasks",
                "platform threads",
                "their mean life, ms",
                "leases",
                "handles created, one per thread",
                "handles created, shared"));
        for (Rows.Row shared : Select.where(rows, "strategy", "SHARED")) {
            Rows.Row own = Select.only(rows, "strategy", "PER_THREAD", "threads", shared.text("threads"));
            table.row(List.of(
                    shared.text("threads"),
                    shared.text("tasks"),
                    shared.text("platform threads"),
                    shared.number("threads ended") == 0 ? "" : shared.text("mean life ms"),
                    shared.text("leases"),
                    own.text("created"),
                    shared.text("created")));
        }
        return table + "\nThe strategies ran one after the other; threads and their lives are those of the shared run. "
                + raw.source(THREADS) + ".\n";
    }

    /// Returns which threads of PyTorch programs have handles: ranges over the runs of each load.
    static String loads(RawOutput raw) {
        List<Rows.Row> rows = Select.where(raw.json(LOADS), "what", "sums");
        Table table = new Table(List.of(
                "program",
                "threads",
                "with a handle",
                "of these ended",
                "their median life, ms",
                "program, ms",
                "handles created",
                "that served another thread later",
                "µs to create one, median"));
        rows.stream().map(row -> row.text("load")).distinct().forEach(load -> {
            List<Rows.Row> runs = Select.where(rows, "load", load);
            table.row(Stream.concat(
                            Stream.of("`" + load + "`"),
                            Stream.of(
                                            "threads",
                                            "threadsWithHandle",
                                            "ofThemEnded",
                                            "lifeMedianMs",
                                            "processMs",
                                            "created",
                                            "servedAnotherThread",
                                            "createMedianUs")
                                    .map(field -> range(runs, field)))
                    .toList());
        });
        return table + "\nThe lowest and the highest of each load's runs. " + raw.source(LOADS) + ".\n";
    }

    private static String range(List<Rows.Row> runs, String field) {
        double[] values = runs.stream()
                .filter(row -> !row.textOr(field, "null").equals("null"))
                .mapToDouble(row -> row.number(field))
                .sorted()
                .toArray();
        if (values.length == 0) {
            return "";
        }
        String low = Table.format("%,.0f", values[0]);
        String high = Table.format("%,.0f", values[values.length - 1]);
        return low.equals(high) ? low : low + " to " + high;
    }

    /// Draws the cost that handles add to a task, by the number of tasks that a thread does before it ends.
    static String chart(RawOutput raw) {
        Map<String, List<Double>> medians = medians(raw);
        double alone = mean(medians, "a thread alone");
        List<Double> tasks = IntStream.rangeClosed(0, 4)
                .mapToObj(power -> Math.pow(10, power))
                .toList();
        double own = mean(medians, "a thread with a handle, PER_THREAD") - alone;
        double shared = mean(medians, "a thread with a handle, SHARED") - alone;
        return new LineChart(
                        "What a thread's handle costs a task",
                        Axis.logarithmic("tasks that a thread does before it ends", 1, tasks.getLast()),
                        Axis.logarithmic("microseconds a task", 0.001, own))
                .linePoints("a handle per thread", tasks, per(tasks, own))
                .linePoints("shared handles", tasks, per(tasks, shared))
                .toString();
    }

    private static List<Double> per(List<Double> tasks, double micros) {
        return tasks.stream().map(count -> micros / count).toList();
    }

    private static double mean(Map<String, List<Double>> medians, String what) {
        return medians.getOrDefault(what, List.of()).stream()
                .mapToDouble(Double::doubleValue)
                .average()
                .orElseThrow();
    }
}
