package io.cistern.benchmarks.figures;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// Makes tables of programs short of memory, and of pools that sleep.
final class MemoryFigures {
    private static final String CAPACITY = "capacity.jsonl";
    private static final String CAPACITY_TIME = "capacity-time.jsonl";
    private static final String GENERATED = "capacity-generated.jsonl";
    private static final String COMPACTION = "compaction.jsonl";
    static final String LARGEST_BATCH = "largest-batch.jsonl";
    private static final String SEQUENCES = "sequences.jsonl";
    private static final String OUT_OF_MEMORY = "out-of-memory.jsonl";
    private static final String SLEEP = "sleep.jsonl";
    private static final List<String> AT_CAPACITY =
            List.of("caching", "torch:", "torch:expandable_segments:True", "cudaMallocAsync");

    private MemoryFigures() {}

    /// Makes the table of recorded programs on devices hardly larger than they need.
    static String capacity(RawOutput raw) {
        Table table = new Table(List.of(
                "trace",
                "1.02 ×: `caching`",
                "PyTorch",
                "expandable segments",
                "`cudaMallocAsync`",
                "1.04 ×: `caching`",
                "PyTorch",
                "expandable segments",
                "`cudaMallocAsync`"));
        List<Rows.Row> rows = raw.json(CAPACITY);
        for (Rows.Row row : Select.where(rows, "allocator", "caching", "capacity", "1.02x")) {
            List<String> cells = new ArrayList<>(List.of(row.text("trace")));
            for (String capacity : List.of("1.02x", "1.04x")) {
                for (String allocator : AT_CAPACITY) {
                    cells.add(refused(Select.only(
                            rows, "allocator", allocator, "capacity", capacity, "trace", row.text("trace"))));
                }
            }
            table.row(cells);
        }
        return table + "\n" + raw.source(CAPACITY) + ".\n";
    }

    /// Makes the table of the time that recorded programs take on a device that is nearly full.
    static String capacityTime(RawOutput raw) {
        Table table = new Table(List.of("trace", "ms with the whole device", "ms with 1.10 ×"));
        List<Rows.Row> rows = raw.json(CAPACITY_TIME);
        rows.stream()
                .map(row -> row.text("trace"))
                .distinct()
                .forEach(trace -> table.row(List.of(
                        trace,
                        millis(Select.where(rows, "trace", trace, "capacity", "")),
                        millis(Select.where(rows, "trace", trace, "capacity", "1.10x")))));
        return table + "\nMedians of three turns, with the lowest and the highest. " + raw.source(CAPACITY_TIME)
                + ".\n";
    }

    private static String millis(List<Rows.Row> turns) {
        double[] sorted = turns.stream()
                .mapToDouble(row -> row.number("wallMillis"))
                .sorted()
                .toArray();
        return Table.format("%.0f (%.0f to %.0f)", sorted[sorted.length / 2], sorted[0], sorted[sorted.length - 1]);
    }

    static String largestBatch(RawOutput raw) {
        Table table =
                new Table(List.of("", "PyTorch 2.11", "expandable segments", "`cudaMallocAsync`", "`cistern_torch`"));
        addLargestBatches(table, raw, List.of("default", "expandable", "async", "cistern"));
        return table + "\n" + raw.source(LARGEST_BATCH) + ".\n";
    }

    /// Adds a row for each size of the device.
    ///
    /// @param allocators the names of the columns' allocators in the raw output
    static void addLargestBatches(Table table, RawOutput raw, List<String> allocators) {
        List<Rows.Row> rows = raw.json(LARGEST_BATCH);
        for (int gigabytes : new int[] {8, 16, 32}) {
            List<String> cells = new ArrayList<>(List.of("GPT-2's largest batch in " + gigabytes + " GB"));
            allocators.forEach(each -> cells.add(batch(Select.where(rows, "conf", each), gigabytes)));
            table.row(cells);
        }
    }

    /// Returns the largest batch on a device; all runs found the same.
    private static String batch(List<Rows.Row> rows, int gigabytes) {
        return rows.stream()
                .filter(row -> row.number("gigabytes") == gigabytes)
                .map(row -> row.text("batch"))
                .distinct()
                .collect(Collectors.joining(", "));
    }

    static String compaction(RawOutput raw) {
        Table table = new Table(List.of(
                "device",
                "MiB moved",
                "MiB set free",
                "pages",
                "by way of the host",
                "ms",
                "ms of one copy",
                "wrong bytes"));
        Map<String, List<Rows.Row>> byHost = raw.json(COMPACTION).stream()
                .collect(Collectors.groupingBy(row -> row.text("hostPages"), TreeMap::new, Collectors.toList()));
        byHost.forEach((pages, rows) -> table.row(List.of(
                pages.equals("0") ? "has room" : "full",
                rows.getFirst().text("movedMiB"),
                rows.getFirst().text("freedMiB"),
                rows.getFirst().text("pages"),
                pages,
                spread(rows),
                Table.format("%.2f", rows.getFirst().number("copyMillis")),
                Long.toString(rows.stream()
                        .mapToLong(row -> (long) row.number("wrongBytes"))
                        .sum()))));
        return table + "\n" + raw.source(COMPACTION) + ".\n";
    }

    private static String spread(List<Rows.Row> rows) {
        double[] millis =
                rows.stream().mapToDouble(row -> row.number("millis")).sorted().toArray();
        double median = (millis[millis.length / 2] + millis[(millis.length - 1) / 2]) / 2;
        return Table.format("%.0f (%.0f to %.0f)", median, millis[0], millis[millis.length - 1]);
    }

    /// Makes the table of generated programs on devices hardly larger than they need.
    static String generatedAtCapacity(RawOutput raw) {
        Table table = new Table(List.of("program, seed", "1.02 ×: refused", "1.04 ×: refused"));
        List<Rows.Row> rows = raw.json(GENERATED);
        int complete = 0;
        List<Rows.Row> larger = Select.where(rows, "capacity", "1.04x");
        for (Rows.Row row : larger) {
            String program = row.text("program");
            String seed = row.text("seed");
            Rows.Row smaller = Select.only(rows, "capacity", "1.02x", "program", program, "seed", seed);
            if (smaller.number("failures") == 0) {
                complete++;
            } else {
                table.row(List.of("`" + program + "`, " + seed, refused(smaller), refused(row)));
            }
        }
        return table + "\nThe other " + complete + " of " + larger.size() + " programs complete at 1.02 ×. "
                + raw.source(GENERATED) + ".\n";
    }

    private static String refused(Rows.Row row) {
        return row.text("failures");
    }

    static String requestsAtCapacity(RawOutput raw) {
        List<Rows.Row> rows = raw.json(SEQUENCES);
        Table table = new Table(List.of("1,200 requests, nine seeds", "refused", "of these with room"));
        for (String name :
                List.of("caching", "PyTorch", "PyTorch, expandable segments", "async", "perfect placement, computed")) {
            List<Rows.Row> own = Select.where(rows, "allocator", name);
            table.row(List.of(name, sum(own, "refused"), sum(own, "refused_with_room")));
        }
        return table + "\n" + raw.source(SEQUENCES) + ".\n";
    }

    private static String sum(List<Rows.Row> rows, String field) {
        return Long.toString(
                rows.stream().mapToLong(row -> Long.parseLong(row.text(field))).sum());
    }

    static String outOfMemory(RawOutput raw) {
        List<Rows.Row> rows = Select.where(raw.json(OUT_OF_MEMORY), "allocator", "caching", "row", "out of memory");
        Table table = new Table(
                List.of("ms of an out of memory beside a million live blocks", "in all", "in the steps", "its text"));
        table.row(List.of(
                "the first of a process",
                of(rows, "millis", true),
                of(rows, "millis_in_steps", true),
                of(rows, "millis_text", true)));
        table.row(List.of(
                "later, median",
                of(rows, "millis", false),
                of(rows, "millis_in_steps", false),
                of(rows, "millis_text", false)));
        return table + "\n" + raw.source(OUT_OF_MEMORY) + ".\n";
    }

    private static String of(List<Rows.Row> rows, String field, boolean first) {
        double[] values = rows.stream()
                .skip(1)
                .mapToDouble(row -> row.number(field))
                .sorted()
                .toArray();
        double median = (values[(values.length - 1) / 2] + values[values.length / 2]) / 2;
        return Table.rounded(first ? rows.getFirst().number(field) : median);
    }

    static String sleep(RawOutput raw) {
        Table table = new Table(List.of(
                "32 GiB",
                "ms, pages as usual",
                "rate beside `cuMemcpy`",
                "ms, pages of 2 MiB",
                "rate beside `cuMemcpy`"));
        List<Rows.Row> rows = raw.json(SLEEP);
        for (String what : List.of("first sleep", "first wake", "sleep", "wake", "sleep, dropped", "wake, dropped")) {
            Rows.Row usual = Select.only(rows, "allocator", "caching", "row", what);
            Rows.Row small = Select.only(rows, "allocator", "caching:page_size=2MiB", "row", what);
            table.row(List.of(what, millis(usual), ofCopy(usual), millis(small), ofCopy(small)));
        }
        return table
                + "\nThe first sleep pins host memory, and the first wake unpins it, since nothing has called"
                + " `PinnedMemory.of(memory)` yet. All others find it pinned. "
                + raw.source(SLEEP) + ".\n";
    }

    private static String millis(Rows.Row row) {
        return Table.rounded(row.number("millis"));
    }

    private static String ofCopy(Rows.Row row) {
        return row.has("ofCopy") ? Table.format("%.2f", row.number("ofCopy")) : "";
    }
}
