package io.cistern.benchmarks.figures;

import java.util.DoubleSummaryStatistics;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Makes tables of the cost of an allocation and its free: beside peers, and the framework's overhead
/// on any provider.
final class PairFigures {
    private static final String FILE = "pairs.jsonl";
    private static final String RMM = "rmm-pairs.txt";
    private static final long SMALL = 64 << 10;
    private static final long MEDIUM = 1 << 20;
    private static final String THREADS = "16";
    private static final List<String> ROUTING = List.of("routing-first-host.csv", "routing-second-host.csv");
    private static final String DRIVER = "async-pair.jsonl";

    private PairFigures() {}

    static String beside(RawOutput raw) {
        List<Rows.Row> rows = raw.json(FILE);
        Table table = new Table(List.of(
                "",
                "ns a cached pair, blocks up to 64 KiB",
                "of 512 KiB to 1 MiB",
                "million pairs a second, 16 threads"));
        for (String allocator : List.of("caching", "torch", "torch:expandable_segments:True", "cudaMallocAsync")) {
            List<Rows.Row> pairs = Select.where(rows, "scenario", "pair", "allocator", allocator);
            DoubleSummaryStatistics small = pairs.stream()
                    .filter(row -> row.number("byteSize") <= SMALL)
                    .mapToDouble(row -> row.number("nanosPerPair"))
                    .summaryStatistics();
            double medium = pairs.stream()
                    .filter(row -> row.number("byteSize") == MEDIUM)
                    .mapToDouble(row -> row.number("nanosPerPair"))
                    .findFirst()
                    .orElseThrow();
            double most = Select.where(rows, "scenario", "threads", "allocator", allocator, "threads", THREADS).stream()
                    .mapToDouble(row -> row.number("pairsPerSecond"))
                    .max()
                    .orElseThrow();
            table.row(List.of(
                    Peers.name(allocator), range(small), Table.format("%.0f", medium), Table.rounded(most / 1e6)));
        }
        return table.toString() + rmm(raw)
                + "\nMedians; of own and shared streams the faster. One block is alive at a time, of a random size"
                + " between half of the largest\nand the largest. `caching` holds one page, which has no room for a block of"
                + " each size class: so a change of size costs more.\nRMM ran on another machine with another program, with one"
                + " fixed size. "
                + raw.source(FILE) + ". RMM: "
                + raw.source(RMM) + ".\n";
    }

    /// RMM was measured beside other peers, on a separate machine.
    private static String rmm(RawOutput raw) {
        StringBuilder rows = new StringBuilder();
        List<String> lines = raw.lines(RMM);
        for (String resource : List.of("rmm_arena", "rmm_pool")) {
            List<String> sizes =
                    lines.stream().filter(line -> line.startsWith("size ")).toList();
            DoubleSummaryStatistics small = sizes.stream()
                    .filter(line -> number(line, "size") <= SMALL)
                    .mapToDouble(line -> number(line, resource))
                    .summaryStatistics();
            double medium = sizes.stream()
                    .filter(line -> number(line, "size") == MEDIUM)
                    .mapToDouble(line -> number(line, resource))
                    .findFirst()
                    .orElseThrow();
            double most = lines.stream()
                    .filter(line -> line.startsWith("threads " + THREADS + " "))
                    .mapToDouble(line -> number(line, resource))
                    .findFirst()
                    .orElseThrow();
            String name = resource.equals("rmm_arena") ? "RMM 26.06, arena" : "RMM 26.06, pool";
            rows.append(Table.format("| %s | %s | %.0f | %s |\n", name, range(small), medium, Table.rounded(most)));
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
        DoubleSummaryStatistics routed = ROUTING.stream()
                .flatMap(file -> raw.csv(file).stream())
                .filter(row -> row.text("Benchmark").endsWith("RoutingBenchmark.publicPair"))
                .mapToDouble(row -> row.number("Score"))
                .summaryStatistics();
        table.row(List.of("does nothing (two hosts, 512 B and 1 MiB, two collectors)", "0", range(routed)));
        table.row(List.of(
                "`async` (4 KiB; its own pair is the driver's, from C)",
                driverPair(raw, "C"),
                driverPair(raw, "async public")));
        return table + "\n" + raw.source(ROUTING.getFirst(), ROUTING.getLast(), DRIVER) + ".\n";
    }

    private static String driverPair(RawOutput raw, String allocator) {
        List<Rows.Row> rows = raw.json(DRIVER);
        return Table.rounded(Select.only(rows, "allocator", allocator, "byteSize", "4096", "threads", "1")
                .number("nanosPerPair"));
    }
}
