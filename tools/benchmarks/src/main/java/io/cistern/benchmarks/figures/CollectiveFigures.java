package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.List;

/// Makes tables of all-reduce between two GPUs beside C++ and PyTorch.
final class CollectiveFigures {
    private static final String FILE = "collectives.jsonl";
    private static final List<Long> SIZES = List.of(
            8L, 4L << 10, 256L << 10, 1L << 20, 4L << 20, 16L << 20, 32L << 20, 64L << 20, 256L << 20, 1L << 30);

    /// Columns of a row before those of windows.
    private static final int PLAIN_COLUMNS = 3;

    private CollectiveFigures() {}

    static String allReduce(RawOutput raw) {
        List<Rows.Row> rows = raw.json(FILE);
        Table table = new Table(
                List.of("bytes", "plain", "in C++", "over", "PyTorch", "registered", "window", "in C++", "over"));
        for (long size : SIZES) {
            List<String> cells = new ArrayList<>(List.of(Table.bytes((double) size)));
            for (String who : List.of(
                    "cistern plain",
                    "nccl_peers plain",
                    "",
                    "nccl_peers.py plain",
                    "cistern registered",
                    "cistern window",
                    "nccl_peers window",
                    "")) {
                String peer = cells.size() <= PLAIN_COLUMNS ? "nccl_peers plain" : "nccl_peers window";
                cells.add(
                        who.isEmpty()
                                ? Table.format("%+.2f", row(rows, peer, size).number("overMicros"))
                                : Table.rounded(row(rows, who, size).number("micros")));
            }
            table.row(cells);
        }
        return table + "\n" + raw.source(FILE) + "; microseconds.\n";
    }

    private static Rows.Row row(List<Rows.Row> rows, String who, long size) {
        return Select.only(rows, "allocator", who, "byteSize", Long.toString(size));
    }
}
