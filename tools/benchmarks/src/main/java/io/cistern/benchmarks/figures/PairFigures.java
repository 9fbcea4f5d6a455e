package io.cistern.benchmarks.figures;

import java.util.DoubleSummaryStatistics;
import java.util.List;

/// Makes tables of the cost of an allocation and its free: beside peers, and the framework's overhead
/// on any provider.
final class PairFigures {
    private static final String FILE = "pairs.jsonl";
    private static final String ROUTING = "routing.csv";
    private static final String DRIVER = "async-pair.jsonl";
    private static final long SMALL = 64 << 10;
    private static final String MEDIUM = "1048576";
    private static final String NANOS = "nanosPerPair";

    private PairFigures() {}

    static String beside(RawOutput raw) {
        List<Row> rows = raw.json(FILE);
        Table table = new Table(
                "",
                "ns a cached pair, blocks up to 64 KiB",
                "of 512 KiB to 1 MiB",
                "million pairs a second, 16 threads");
        for (String allocator : List.of("caching", "torch", "torch:expandable_segments:True", "cudaMallocAsync")) {
            List<Row> pairs = Row.where(rows, "scenario", "pair", "allocator", allocator);
            List<Row> small = pairs.stream()
                    .filter(row -> row.number("byteSize") <= SMALL)
                    .toList();
            List<Row> threads = Row.where(rows, "scenario", "threads", "allocator", allocator, "threads", "16");
            table.row(
                    Names.allocator(allocator),
                    range(small, NANOS),
                    Table.format("%.0f", Row.only(pairs, "byteSize", MEDIUM).number(NANOS)),
                    Table.rounded(threads.stream()
                                    .mapToDouble(row -> row.number("pairsPerSecond"))
                                    .max()
                                    .orElseThrow()
                            / 1e6));
        }
        return table
                + "\nMedians; of own and shared streams the faster. One block is alive at a time, of a random size"
                + " between half of the largest\nand the largest. `caching` holds one page, which has no room for a block of"
                + " each size class: so a change of size costs more.\n"
                + raw.source(FILE) + ".\n";
    }

    private static String range(List<Row> rows, String field) {
        DoubleSummaryStatistics values =
                rows.stream().mapToDouble(row -> row.number(field)).summaryStatistics();
        return Table.format("%.0f to %.0f", values.getMin(), values.getMax());
    }

    static String added(RawOutput raw) {
        Table table = new Table("provider", "its own pair, ns", "through Cistern, metered and owned, ns");
        List<Row> routed = raw.csv(ROUTING).stream()
                .filter(row -> row.text("Benchmark").endsWith("RoutingBenchmark.publicPair"))
                .toList();
        table.row("does nothing (512 B and 1 MiB, two collectors)", "0", range(routed, "Score"));
        table.row(
                "`async` (4 KiB; its own pair is the driver's, from C)",
                driverPair(raw, "C"),
                driverPair(raw, "async public"));
        return table + "\n" + raw.source(ROUTING, DRIVER) + ".\n";
    }

    private static String driverPair(RawOutput raw, String allocator) {
        return Table.rounded(Row.only(raw.json(DRIVER), "allocator", allocator, "byteSize", "4096", "threads", "1")
                .number(NANOS));
    }
}
