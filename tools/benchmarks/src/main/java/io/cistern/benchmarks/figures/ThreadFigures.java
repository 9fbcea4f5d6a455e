package io.cistern.benchmarks.figures;

import java.util.List;
import java.util.Map;

/// Makes the table of many threads whose sizes never repeat.
final class ThreadFigures {
    static final String FILE = "threads.jsonl";
    private static final double MIB = 1 << 20;

    private ThreadFigures() {}

    static String loads(RawOutput raw) {
        List<Row> rows = raw.json(FILE);
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
            table.row(
                    loads.getOrDefault(load, load),
                    cell(rows, load, "caching"),
                    cell(rows, load, "torch"),
                    cell(rows, load, "torch:expandable_segments:True"),
                    cell(rows, load, "cudaMallocAsync"));
        }
        return table + "\nThe lowest and the highest of three rounds. " + raw.source(FILE) + ".\n";
    }

    private static String cell(List<Row> rows, String load, String allocator) {
        Row row = Row.only(rows, "load", load, "allocator", allocator);
        return micros(row) + " · " + Table.format("%,.0f", row.number("reservedPeakBytes") / MIB);
    }

    /// Returns the lowest and the highest round.
    static String micros(Row row) {
        return Table.rounded(row.number("least") / 1000) + "–" + Table.rounded(row.number("most") / 1000);
    }
}
