package io.cistern.benchmarks.figures;

import io.cistern.benchmarks.charts.Rows;
import java.util.ArrayList;
import java.util.DoubleSummaryStatistics;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// What an allocation and its free cost: beside peers, and what the framework adds to any provider.
final class PairFigures {
    private static final String RUN = "2026-11-23-h200/raw-threads";
    private static final String RMM = "2026-11-h200-rmm";
    private static final long LARGEST = 1 << 20;
    private static final String THREADS = "16";
    private static final List<String> ROUTING = List.of("jmh-routing-G1.csv", "jmh-routing-Z.csv");
    private static final List<String> ROUTING_RUNS =
            List.of("2026-11-21-h200-joined/raw-second", "2026-11-23-h200/raw-jmh");
    private static final String DRIVER_RUN = "2026-11-23-h200/raw-pools-buffers";

    private PairFigures() {}

    static String beside(RawOutput raw) {
        List<Rows.Row> rows = new ArrayList<>(raw.json(RUN, "bench.jsonl"));
        rows.addAll(raw.json(RUN, "bench-peers.jsonl"));
        Table table =
                new Table(List.of("", "ns a cached pair, blocks up to 1 MiB", "million pairs a second, 16 threads"));
        Map<String, String> names = Map.of(
                "caching", "`caching`",
                "torch", "PyTorch 2.11",
                "torch:expandable_segments:True", "PyTorch, expandable",
                "cudaMallocAsync", "`cudaMallocAsync` (C)");
        for (String allocator : List.of("caching", "torch", "torch:expandable_segments:True", "cudaMallocAsync")) {
            DoubleSummaryStatistics pairs = Select.where(rows, "scenario", "pair", "allocator", allocator).stream()
                    .filter(row -> row.number("byteSize") <= LARGEST)
                    .mapToDouble(row -> row.number("nanosPerPair"))
                    .summaryStatistics();
            double most = Select.where(rows, "scenario", "threads", "allocator", allocator, "threads", THREADS).stream()
                    .mapToDouble(row -> row.number("pairsPerSecond"))
                    .max()
                    .orElseThrow();
            table.row(List.of(names.get(allocator), range(pairs), Table.rounded(most / 1e6)));
        }
        return table.toString() + rmm(raw) + "\nMedians; of own and shared streams the faster. "
                + raw.source(RUN, "bench.jsonl", "bench-peers.jsonl") + ". RMM: "
                + raw.source(RMM, "pairs.txt") + ".\n";
    }

    /// RMM was measured beside other peers, on a machine of its own.
    private static String rmm(RawOutput raw) {
        StringBuilder rows = new StringBuilder();
        List<String> lines = raw.lines(RMM, "pairs.txt");
        for (String resource : List.of("rmm_arena", "rmm_pool")) {
            DoubleSummaryStatistics pairs = lines.stream()
                    .filter(line -> line.startsWith("size "))
                    .filter(line -> number(line, "size") <= LARGEST)
                    .mapToDouble(line -> number(line, resource))
                    .summaryStatistics();
            double most = lines.stream()
                    .filter(line -> line.startsWith("threads " + THREADS + " "))
                    .mapToDouble(line -> number(line, resource))
                    .findFirst()
                    .orElseThrow();
            String name = resource.equals("rmm_arena") ? "RMM 26.06, arena" : "RMM 26.06, pool";
            rows.append(Table.format("| %s | %s | %s |\n", name, range(pairs), Table.rounded(most)));
        }
        return rows.toString();
    }

    private static double number(String line, String name) {
        Matcher found = Pattern.compile("(?:^| )" + name + " ([\\d.]+)").matcher(line);
        if (!found.find()) {
            throw new IllegalStateException(name + " in " + line);
        }
        return Double.parseDouble(found.group(1));
    }

    private static String range(DoubleSummaryStatistics values) {
        return Table.format("%.0f to %.0f", values.getMin(), values.getMax());
    }

    static String added(RawOutput raw) {
        Table table = new Table(List.of("provider", "its own pair, ns", "through Cistern, metered and owned, ns"));
        DoubleSummaryStatistics routed = ROUTING_RUNS.stream()
                .flatMap(run -> ROUTING.stream().flatMap(file -> raw.csv(run, file).stream()))
                .filter(row -> row.text("Benchmark").endsWith("RoutingBenchmark.publicPair"))
                .mapToDouble(row -> row.number("Score"))
                .summaryStatistics();
        table.row(List.of("does nothing (two hosts, 512 B and 1 MiB, two collectors)", "0", range(routed)));
        table.row(List.of(
                "`async` (4 KiB; its own pair is the driver's, from C)",
                driverPair(raw, "C"),
                driverPair(raw, "async public")));
        String[] files = ROUTING.toArray(String[]::new);
        return table + "\n" + raw.source(ROUTING_RUNS.getFirst(), files) + "; "
                + raw.source(ROUTING_RUNS.getLast(), files) + "; " + raw.source(DRIVER_RUN, "async-pair.jsonl") + ".\n";
    }

    private static String driverPair(RawOutput raw, String allocator) {
        List<Rows.Row> rows = raw.json(DRIVER_RUN, "async-pair.jsonl");
        return Table.rounded(Select.only(rows, "allocator", allocator, "byteSize", "4096", "threads", "1")
                .number("nanosPerPair"));
    }
}
