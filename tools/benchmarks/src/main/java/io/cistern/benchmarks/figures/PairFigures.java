package io.cistern.benchmarks.figures;

import java.util.DoubleSummaryStatistics;
import java.util.List;

/// Makes tables of the cost of an allocation and its free: against peers, and the framework's overhead
/// on any provider.
final class PairFigures {
    private static final String FILE = "pairs.jsonl";
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
                + "\nMedians of three rounds. A range spans the results for blocks of up to 512 bytes, 4 KiB and 64 KiB. The last"
                + " column (blocks of up to\n4 KiB) is the faster of two runs: a stream for each thread, and one stream for"
                + " all. Each thread has one live block at a time, of a random\nsize between half of the largest and the"
                + " largest. In the second column, `caching` holds one page, which has no room for a block of each\nsize"
                + " class, so a change of size costs more.\n"
                + raw.source(FILE) + ".\n";
    }

    private static String range(List<Row> rows, String field) {
        DoubleSummaryStatistics values =
                rows.stream().mapToDouble(row -> row.number(field)).summaryStatistics();
        return Table.format("%.0f–%.0f", values.getMin(), values.getMax());
    }

    /// Makes the table of what the way through Cistern adds to the driver's own pair.
    static String added(RawOutput raw) {
        Table table = new Table("ns a pair", "4 KiB", "1 MiB");
        added(table, raw, "`cudaMallocAsync`, `cudaFreeAsync` from C", "C");
        added(table, raw, "the same two calls from Java", "async floor");
        added(table, raw, "`async`, called directly", "async raw");
        added(table, raw, "`async` through Cistern, counted and owned", "async public");
        return table + "\nMedians of alternating rounds in one process, with the tenth and the ninetieth percentile. "
                + raw.source(DRIVER) + ".\n";
    }

    private static void added(Table table, RawOutput raw, String what, String allocator) {
        table.row(what, driverPair(raw, allocator, "4096"), driverPair(raw, allocator, MEDIUM));
    }

    private static String driverPair(RawOutput raw, String allocator, String byteSize) {
        Row row = Row.only(raw.json(DRIVER), "allocator", allocator, "byteSize", byteSize, "threads", "1");
        return Table.rounded(row.number(NANOS)) + " (" + Table.rounded(row.number("p10")) + "–"
                + Table.rounded(row.number("p90")) + ")";
    }
}
