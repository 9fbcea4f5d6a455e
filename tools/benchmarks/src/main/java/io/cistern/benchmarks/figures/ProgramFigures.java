package io.cistern.benchmarks.figures;

import java.util.List;

/// Makes tables of the cost of plug-ins, program starts and buffers on the host of an H200.
final class ProgramFigures {
    private static final String BOUNDARY = "native-boundary.jsonl";
    private static final String START = "startup.jsonl";
    private static final String BUFFERS = "buffers.csv";
    private static final String PLAIN = "-UseSystemMemoryBarrier";

    private ProgramFigures() {}

    /// Each row belongs to the option whose row precedes it, and is compared with the same loop on one side.
    static String boundary(RawOutput raw) {
        Table table = new Table(
                "ns a pair", "across", "on one side", "across, with `-XX:+UseSystemMemoryBarrier`", "on one side");
        List<Row> rows = raw.json(BOUNDARY);
        for (String name : List.of("library", "brief", "exported")) {
            String[] cells = {"", "", "", ""};
            String option = "";
            for (int i = 0; i < rows.size(); i++) {
                option = rows.get(i).textOr("option", option);
                if (rows.get(i).textOr("row", "").equals(name)) {
                    int at = option.equals(PLAIN) ? 0 : 2;
                    cells[at] = Table.rounded(rows.get(i).number("nanosPerPair"));
                    cells[at + 1] = Table.rounded(rows.get(i - 1).number("nanosPerPair"));
                }
            }
            String what = switch (name) {
                case "library" -> "Java calls a library; C calls it";
                case "brief" -> "the same with `critical=true`";
                default -> "C calls an allocator in Java; Java calls it";
            };
            table.row(what, cells[0], cells[1], cells[2], cells[3]);
        }
        return table.with("", raw, BOUNDARY);
    }

    static String start(RawOutput raw) {
        Table table = new Table("ms beyond an empty `main`", "median", "fastest");
        for (Row row : raw.json(START)) {
            if (!row.text("overEmpty").equals("0")) {
                table.row(row.text("started"), row.text("overEmpty"), row.text("fastestOverEmpty"));
            }
        }
        return table.with("", raw, START);
    }

    static String buffers(RawOutput raw) {
        Table table = new Table("", "ns", "B of garbage");
        List<Row> rows = raw.csv(BUFFERS);
        buffer(table, rows, "raw pair", "rawPair");
        buffer(table, rows, "`DeviceBuffer`, allocated and closed", "bufferPair");
        buffer(table, rows, "`PinnedBuffer`, allocated and closed", "pinnedPair");
        buffer(table, rows, "address from a confined arena", "arenaAddress");
        buffer(table, rows, "ten addresses and a reset", "arenaTenAndReset");
        return table.with("Scores of JMH ± its error. ", raw, BUFFERS);
    }

    private static void buffer(Table table, List<Row> rows, String what, String method) {
        String benchmark = "io.cistern.benchmarks.BufferBenchmark." + method;
        Row time = Row.only(rows, "Benchmark", benchmark);
        Row garbage = Row.only(rows, "Benchmark", benchmark + ":gc.alloc.rate.norm");
        table.row(
                what,
                Table.format("%.1f ± %.1f", time.number("Score"), time.number("Score Error (99.9%)")),
                Table.format("%.0f", garbage.number("Score")));
    }
}
