package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// Makes tables of programs short of memory, and of pools that sleep.
final class MemoryFigures {
    private static final String CAPACITY = "capacity.jsonl";
    private static final String COMPACTION = "compaction.jsonl";
    private static final String SEQUENCES = "sequences.jsonl";
    private static final String SLEEP = "sleep.jsonl";

    private MemoryFigures() {}

    /// Makes the table of recorded programs on devices hardly larger than they need.
    static String capacity(RawOutput raw) {
        Table table = new Table(
                "trace",
                "1.02 ×: `caching`",
                "PyTorch",
                "expandable segments",
                "`cudaMallocAsync`",
                "1.04 ×: `caching`",
                "PyTorch",
                "expandable segments",
                "`cudaMallocAsync`");
        List<Row> rows = raw.json(CAPACITY);
        for (Row each : Row.where(rows, "allocator", "caching", "capacity", "1.02x")) {
            String trace = each.text("trace");
            List<String> cells = new ArrayList<>(List.of(trace));
            for (String capacity : List.of("1.02x", "1.04x")) {
                for (String allocator :
                        List.of("caching", "torch:", "torch:expandable_segments:True", "cudaMallocAsync")) {
                    cells.add(Row.only(rows, "allocator", allocator, "capacity", capacity, "trace", trace)
                            .text("failures"));
                }
            }
            table.row(cells);
        }
        return table.with("", raw, CAPACITY);
    }

    static String compaction(RawOutput raw) {
        Table table = new Table(
                "device",
                "MiB moved",
                "MiB set free",
                "pages",
                "through the host",
                "ms",
                "ms of one copy",
                "wrong bytes");
        Map<String, List<Row>> byHost = raw.json(COMPACTION).stream()
                .collect(Collectors.groupingBy(row -> row.text("hostPages"), TreeMap::new, Collectors.toList()));
        byHost.forEach((pages, rows) -> table.row(
                pages.equals("0") ? "has room" : "full",
                rows.getFirst().text("movedMiB"),
                rows.getFirst().text("freedMiB"),
                rows.getFirst().text("pages"),
                pages,
                Table.spread(rows, "millis", "%.0f"),
                Table.format("%.2f", rows.getFirst().number("copyMillis")),
                sum(rows, "wrongBytes")));
        return table.with("", raw, COMPACTION);
    }

    static String requestsAtCapacity(RawOutput raw) {
        List<Row> rows = raw.json(SEQUENCES);
        Table table = new Table("1,200 requests, nine seeds", "refused", "of these with room");
        for (String name :
                List.of("caching", "PyTorch", "PyTorch, expandable segments", "async", "perfect placement, computed")) {
            List<Row> own = Row.where(rows, "allocator", name);
            table.row(name, sum(own, "refused"), sum(own, "refused_with_room"));
        }
        return table.with("", raw, SEQUENCES);
    }

    private static String sum(List<Row> rows, String field) {
        return Long.toString(
                rows.stream().mapToLong(row -> Long.parseLong(row.text(field))).sum());
    }

    static String sleep(RawOutput raw) {
        Table table = new Table(
                "32 GiB",
                "ms, pages as usual",
                "rate against `cuMemcpy`",
                "ms, pages of 2 MiB",
                "rate against `cuMemcpy`");
        List<Row> rows = raw.json(SLEEP);
        for (String what : List.of("first sleep", "first wake", "sleep", "wake", "sleep, dropped", "wake, dropped")) {
            List<String> cells = new ArrayList<>(List.of(what));
            for (String spec : List.of("caching", "caching:page_size=2MiB")) {
                Row row = Row.only(rows, "allocator", spec, "row", what);
                cells.add(Table.rounded(row.number("millis")));
                cells.add(row.has("ofCopy") ? Table.format("%.2f", row.number("ofCopy")) : "");
            }
            table.row(cells);
        }
        return table
                + "\nThe first sleep pins host memory, and the first wake unpins it, since nothing has called"
                + " `PinnedMemory.of(memory)` yet. All others find it pinned. "
                + raw.source(SLEEP) + ".\n";
    }
}
