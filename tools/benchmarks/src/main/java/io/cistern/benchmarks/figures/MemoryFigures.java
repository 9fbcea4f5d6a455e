package io.cistern.benchmarks.figures;

import java.util.List;

/// Memory that gets short, and pools that sleep.
final class MemoryFigures {
    private static final String CAPACITY = "capacity.jsonl";
    private static final String OUT_OF_MEMORY = "out-of-memory.jsonl";
    private static final String SLEEP = "sleep-first-host.jsonl";
    private static final String SECOND_SLEEP = "sleep-second-host.jsonl";
    private static final String TIGHT = "caching:fit=tight";

    private MemoryFigures() {}

    static String capacity(RawOutput raw) {
        Table table = new Table(List.of(
                "trace", "`caching`: refused", "reserved / requested", "`fit=tight`: refused", "reserved / requested"));
        List<Rows.Row> rows = raw.json(CAPACITY);
        for (Rows.Row row : Select.where(rows, "allocator", "caching")) {
            Rows.Row tight = Select.only(rows, "allocator", TIGHT, "trace", row.text("trace"));
            table.row(List.of(row.text("trace"), refused(row), ratio(row), refused(tight), ratio(tight)));
        }
        return table + "\n" + raw.source(CAPACITY) + ".\n";
    }

    private static String refused(Rows.Row row) {
        return row.text("failures");
    }

    private static String ratio(Rows.Row row) {
        return Table.format("%.3f", row.number("ratio"));
    }

    static String requestsAtCapacity(RawOutput raw) {
        List<Rows.Row> rows = Select.where(raw.json(OUT_OF_MEMORY), "row", "sequence");
        List<String> names =
                List.of("`caching`", "`caching:fit=tight`", "`async`", "PyTorch 2.11", "PyTorch, expandable segments");
        Table table = new Table(List.of("", "served", "refused"));
        for (int i = 0; i < rows.size(); i++) {
            table.row(List.of(
                    names.get(i), rows.get(i).text("served"), rows.get(i).text("refused")));
        }
        return table + "\n" + raw.source(OUT_OF_MEMORY) + ".\n";
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
        for (String file : List.of(SLEEP, SECOND_SLEEP)) {
            List<Rows.Row> rows = raw.json(file);
            for (String what : List.of("first sleep", "sleep", "wake", "sleep, dropped", "wake, dropped")) {
                Rows.Row usual = Select.only(rows, "allocator", "caching", "row", what);
                Rows.Row small = Select.only(rows, "allocator", "caching:page_size=2MiB", "row", what);
                String host = file.equals(SLEEP) ? "first host" : "second host";
                table.row(List.of(what + ", " + host, millis(usual), ofCopy(usual), millis(small), ofCopy(small)));
            }
        }
        return table
                + "\nTwo hosts. The first sleep of each pins host memory; the second column's finds it pinned already. "
                + raw.source(SLEEP, SECOND_SLEEP) + ".\n";
    }

    private static String millis(Rows.Row row) {
        return Table.rounded(row.number("millis"));
    }

    private static String ofCopy(Rows.Row row) {
        return row.has("ofCopy") ? Table.format("%.2f", row.number("ofCopy")) : "";
    }
}
