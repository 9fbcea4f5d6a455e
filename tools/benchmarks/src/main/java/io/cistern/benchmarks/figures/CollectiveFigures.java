package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.List;

/// Makes tables of all-reduce between two GPUs beside C++ and PyTorch.
final class CollectiveFigures {
    private static final String FILE = "collectives-first-host.jsonl";
    private static final String SECOND_FILE = "collectives-second-host.jsonl";
    private static final List<Long> SIZES = List.of(
            8L, 4L << 10, 256L << 10, 1L << 20, 4L << 20, 16L << 20, 32L << 20, 64L << 20, 256L << 20, 1L << 30);
    private static final List<String> WAYS = List.of("plain", "registered", "window");
    /// Up to this size, a call takes longer than moving its bytes.
    private static final double SMALL = 1 << 20;

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
                String peer = cells.size() < WAYS.size() + 1 ? "nccl_peers plain" : "nccl_peers window";
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

    /// Makes the table of Java's overhead on small calls, on each host.
    static String over(RawOutput raw) {
        Table table = new Table(List.of("host", "plain", "registered", "window"));
        for (String file : List.of(FILE, SECOND_FILE)) {
            List<String> cells = new ArrayList<>(List.of(file.equals(FILE) ? "first" : "second"));
            for (String way : WAYS) {
                double[] over = Select.where(raw.json(file), "allocator", "nccl_peers " + way).stream()
                        .filter(row -> row.number("byteSize") <= SMALL)
                        .mapToDouble(row -> row.number("overMicros"))
                        .sorted()
                        .toArray();
                cells.add(Table.format("%+.2f to %+.2f", over[0], over[over.length - 1]));
            }
            table.row(cells);
        }
        return table + "\n" + raw.source(FILE, SECOND_FILE) + "; microseconds over C++, sizes up to 1 MiB.\n";
    }
}
