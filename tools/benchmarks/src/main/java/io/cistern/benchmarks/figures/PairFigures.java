package io.cistern.benchmarks.figures;

import java.util.DoubleSummaryStatistics;
import java.util.List;

/// Makes tables of the cost of an allocation and its free: beside peers, and the framework's overhead
/// on any provider.
final class PairFigures {
    private static final String FILE = "pairs.jsonl";
    private static final long SMALL = 64 << 10;
    private static final long MEDIUM = 1 << 20;
    private static final String THREADS = "16";
    private static final String ROUTING = "routing.csv";
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
        return table
                + "\nMedians; of own and shared streams the faster. One block is alive at a time, of a random size"
                + " between half of the largest\nand the largest. `caching` holds one page, which has no room for a block of"
                + " each size class: so a change of size costs more.\n"
                + raw.source(FILE) + ".\n";
    }

    private static String range(DoubleSummaryStatistics values) {
        return Table.format("%.0f to %.0f", values.getMin(), values.getMax());
    }

    static String added(RawOutput raw) {
        Table table = new Table(List.of("provider", "its own pair, ns", "through Cistern, metered and owned, ns"));
        DoubleSummaryStatistics routed = raw.csv(ROUTING).stream()
                .filter(row -> row.text("Benchmark").endsWith("RoutingBenchmark.publicPair"))
                .mapToDouble(row -> row.number("Score"))
                .summaryStatistics();
        table.row(List.of("does nothing (512 B and 1 MiB, two collectors)", "0", range(routed)));
        table.row(List.of(
                "`async` (4 KiB; its own pair is the driver's, from C)",
                driverPair(raw, "C"),
                driverPair(raw, "async public")));
        return table + "\n" + raw.source(ROUTING, DRIVER) + ".\n";
    }

    private static String driverPair(RawOutput raw, String allocator) {
        List<Rows.Row> rows = raw.json(DRIVER);
        return Table.rounded(Select.only(rows, "allocator", allocator, "byteSize", "4096", "threads", "1")
                .number("nanosPerPair"));
    }
}
