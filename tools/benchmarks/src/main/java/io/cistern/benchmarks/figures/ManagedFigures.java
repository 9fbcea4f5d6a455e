package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Makes the table of the speed of managed data beside plain memory and copies.
final class ManagedFigures {
    private static final String FILE = "managed.csv";
    private static final String POOL = "managed-pool.csv";
    private static final Map<String, String> WAYS = new LinkedHashMap<>();
    private static final Map<String, String> POOL_WAYS = new LinkedHashMap<>();

    static {
        WAYS.put("device", "plain memory");
        WAYS.put("copies", "plain memory for a part, copied from and to pinned memory in each pass");
        WAYS.put("touch", "managed, moved by page faults");
        WAYS.put("prefetch", "managed, prefetched before each pass");
        WAYS.put("prefer_device", "managed, advised to stay on the device");
        WAYS.put("prefer_host", "managed, advised to stay on the host");
        POOL_WAYS.put("touch", "a managed pool of the driver, moved by page faults");
        POOL_WAYS.put("prefetch", "the same, prefetched before each pass");
    }

    private ManagedFigures() {}

    static String table(RawOutput raw) {
        Table table = new Table(List.of(
                "GB/s",
                "0.9 of the device: the first read",
                "later reads",
                "writes",
                "1.1: the first read",
                "later reads",
                "writes",
                "1.5: later reads",
                "writes"));
        WAYS.forEach((way, name) -> table.row(cells(raw.csv(FILE), way, name)));
        POOL_WAYS.forEach((way, name) -> table.row(cells(raw.csv(POOL), way, name)));
        return table
                + "\nA kernel reads all of the data, or a fill writes them, three times over; of later passes the third is"
                + " shown. " + raw.source(FILE, POOL) + ".\n";
    }

    private static List<String> cells(List<Rows.Row> rows, String way, String name) {
        List<String> cells = new ArrayList<>(List.of(name));
        cells.add(rate(rows, way, "0.9", "read", "1"));
        cells.add(rate(rows, way, "0.9", "read", "3"));
        cells.add(rate(rows, way, "0.9", "write", "3"));
        cells.add(rate(rows, way, "1.1", "read", "1"));
        cells.add(rate(rows, way, "1.1", "read", "3"));
        cells.add(rate(rows, way, "1.1", "write", "3"));
        cells.add(rate(rows, way, "1.5", "read", "3"));
        cells.add(rate(rows, way, "1.5", "write", "3"));
        return cells;
    }

    private static String rate(List<Rows.Row> rows, String way, String share, String step, String pass) {
        return Select.where(rows, "way", way, "share", share, "step", step, "pass", pass).stream()
                .findFirst()
                .map(row -> Table.rounded(row.number("gigabytes_per_second")))
                .orElse("");
    }
}
