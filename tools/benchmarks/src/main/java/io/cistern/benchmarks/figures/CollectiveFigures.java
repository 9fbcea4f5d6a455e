package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.List;

/// Makes the table of all-reduce between two GPUs against C++ and PyTorch.
final class CollectiveFigures {
    private static final String FILE = "collectives.jsonl";
    private static final List<Long> SIZES = List.of(
            8L, 4L << 10, 256L << 10, 1L << 20, 4L << 20, 16L << 20, 32L << 20, 64L << 20, 256L << 20, 1L << 30);

    private CollectiveFigures() {}

    static String allReduce(RawOutput raw) {
        List<Row> rows = raw.json(FILE);
        Table table = new Table("bytes", "plain", "over C++", "PyTorch", "registered", "window", "over C++");
        for (long size : SIZES) {
            List<String> cells = new ArrayList<>(List.of(Table.bytes((double) size)));
            cells.add(micros(rows, "cistern plain", size));
            cells.add(over(rows, "nccl_peers plain", size));
            cells.add(micros(rows, "nccl_peers.py plain", size));
            cells.add(micros(rows, "cistern registered", size));
            cells.add(micros(rows, "cistern window", size));
            cells.add(over(rows, "nccl_peers window", size));
            table.row(cells);
        }
        return table + "\n" + raw.source(FILE) + "; microseconds.\n";
    }

    private static String micros(List<Row> rows, String who, long size) {
        return Table.rounded(row(rows, who, size).number("micros"));
    }

    private static String over(List<Row> rows, String who, long size) {
        return Table.format("%+.2f", row(rows, who, size).number("overMicros"));
    }

    private static Row row(List<Row> rows, String who, long size) {
        return Row.only(rows, "allocator", who, "byteSize", Long.toString(size));
    }
}
