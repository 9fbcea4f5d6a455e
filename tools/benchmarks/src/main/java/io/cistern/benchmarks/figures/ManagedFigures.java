package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.List;

/// Makes the table of the speed of managed data against plain memory and copies.
final class ManagedFigures {
    private static final String FILE = "managed.csv";
    private static final String POOL = "managed-pool.csv";

    private ManagedFigures() {}

    static String table(RawOutput raw) {
        Table table = new Table(
                "GB/s",
                "0.9 of the device: the first read",
                "later reads",
                "writes",
                "1.1: the first read",
                "later reads",
                "writes",
                "1.5: later reads",
                "writes");
        List<Row> rows = raw.csv(FILE);
        table.row(cells(rows, "device", "plain memory"));
        table.row(cells(rows, "copies", "plain memory for a part, copied from and to pinned memory in each pass"));
        table.row(cells(rows, "touch", "managed, moved by page faults"));
        table.row(cells(rows, "prefetch", "managed, prefetched before each pass"));
        table.row(cells(rows, "prefer_device", "managed, advised to stay on the device"));
        table.row(cells(rows, "prefer_host", "managed, advised to stay on the host"));
        List<Row> pool = raw.csv(POOL);
        table.row(cells(pool, "touch", "a managed pool of the driver, moved by page faults"));
        table.row(cells(pool, "prefetch", "the same, prefetched before each pass"));
        return table
                + "\nA kernel reads all of the data, or a fill writes them, three times over; of later passes the third is"
                + " shown. " + raw.source(FILE, POOL) + ".\n";
    }

    private static List<String> cells(List<Row> rows, String way, String name) {
        List<String> cells = new ArrayList<>(List.of(name));
        for (String at :
                List.of("0.9 read 1", "0.9 read 3", "0.9 write 3", "1.1 read 1", "1.1 read 3", "1.1 write 3")) {
            cells.add(rate(rows, way, at.split(" ", -1)));
        }
        cells.add(rate(rows, way, "1.5", "read", "3"));
        cells.add(rate(rows, way, "1.5", "write", "3"));
        return cells;
    }

    private static String rate(List<Row> rows, String way, String... at) {
        return Row.where(rows, "way", way, "share", at[0], "step", at[1], "pass", at[2]).stream()
                .findFirst()
                .map(row -> Table.rounded(row.number("gigabytes_per_second")))
                .orElse("");
    }
}
