package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// Makes tables of the cost of an allocation and its free: against peers, also of many threads whose sizes never
/// repeat, and the framework's overhead on any provider.
final class PairFigures {
    static final String FILE = "pairs.jsonl";
    static final String THREADS = "threads.jsonl";
    private static final String DRIVER = "async-pair.jsonl";
    private static final double MIB = 1 << 20;
    private static final List<String> ALLOCATORS =
            List.of("caching", "torch", "torch:expandable_segments:True", "cudaMallocAsync");
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
        for (String allocator : ALLOCATORS) {
            List<Row> pairs = Row.where(rows, "scenario", "pair", "allocator", allocator);
            List<Row> threads = Row.where(rows, "scenario", "threads", "allocator", allocator, "threads", "16");
            table.row(
                    Names.allocator(allocator),
                    Table.range(Row.samples(small(pairs), NANOS), value -> Table.format("%.0f", value)),
                    Table.format("%.0f", Row.only(pairs, "byteSize", MEDIUM).number(NANOS)),
                    Table.rounded(Row.samples(threads, "pairsPerSecond").most() / 1e6));
        }
        return table.with(
                "Medians of three rounds. A range spans the results for blocks of up to 512 bytes, 4 KiB and 64 KiB. The last"
                        + " column (blocks of up to\n4 KiB) is the faster of two runs: a stream for each thread, and one stream for"
                        + " all. Each thread has one live block at a time, of a random\nsize between half of the largest and the"
                        + " largest. In the second column, `caching` holds one page, which has no room for a block of each\nsize"
                        + " class, so a change of size costs more.\n",
                raw,
                FILE);
    }

    /// Returns the rows of blocks up to 64 KiB.
    static List<Row> small(List<Row> pairs) {
        return pairs.stream().filter(row -> row.number("byteSize") <= 64 << 10).toList();
    }

    /// Makes the table of what the way through Cistern adds to the driver's own pair.
    static String added(RawOutput raw) {
        Table table = new Table("ns a pair", "4 KiB", "1 MiB");
        added(table, raw, "`cudaMallocAsync`, `cudaFreeAsync` from C", "C");
        added(table, raw, "the same two calls from Java", "async floor");
        added(table, raw, "`async`, called directly", "async raw");
        added(table, raw, "`async` through Cistern, counted and owned", "async public");
        return table.with(
                "Medians of alternating rounds in one process, with the tenth and the ninetieth percentile. ",
                raw,
                DRIVER);
    }

    private static void added(Table table, RawOutput raw, String what, String allocator) {
        table.row(what, driverPair(raw, allocator, "4096"), driverPair(raw, allocator, MEDIUM));
    }

    private static String driverPair(RawOutput raw, String allocator, String byteSize) {
        Row row = Row.only(raw.json(DRIVER), "allocator", allocator, "byteSize", byteSize, "threads", "1");
        return Table.rounded(row.number(NANOS)) + " (" + Table.rounded(row.number("p10")) + "–"
                + Table.rounded(row.number("p90")) + ")";
    }

    /// Makes the table of many threads whose sizes never repeat.
    static String loads(RawOutput raw) {
        List<Row> rows = raw.json(THREADS);
        Table table = new Table(
                "µs an operation · MiB reserved",
                "`caching`",
                "PyTorch 2.11",
                "PyTorch, expandable",
                "`cudaMallocAsync` (C)");
        Map<String, String> loads = Map.of(
                "own", "64 blocks of 512 B to 256 KiB a thread, a stream each",
                "shared", "the same on one stream",
                "large", "eight blocks of 1 to 16 MiB a thread, a stream each");
        for (String load : List.of("own", "shared", "large")) {
            List<String> cells = new ArrayList<>(List.of(loads.getOrDefault(load, load)));
            for (String allocator : ALLOCATORS) {
                Row row = Row.only(rows, "load", load, "allocator", allocator);
                cells.add(micros(row) + " · " + Table.format("%,.0f", row.number("reservedPeakBytes") / MIB));
            }
            table.row(cells);
        }
        return table.with("The lowest and the highest of three rounds. ", raw, THREADS);
    }

    /// Returns the lowest and the highest round.
    static String micros(Row row) {
        return Table.rounded(row.number("least") / 1000) + "–" + Table.rounded(row.number("most") / 1000);
    }
}
