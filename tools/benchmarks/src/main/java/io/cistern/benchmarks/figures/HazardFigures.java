package io.cistern.benchmarks.figures;

import java.util.List;
import java.util.Map;

/// Makes the tables of the check for races: what it finds compared with PyTorch's sanitizer, and what it costs.
final class HazardFigures {
    private static final String FOUND = "races.jsonl";
    private static final String COSTS = "hazard-costs.jsonl";
    private static final String NANOS = "nanosPerOperation";

    private static final Map<String, String> RACES = Map.of(
            "read_before_write_ended", "a stream reads what another still writes",
            "write_before_read_ended", "a stream writes what another still reads",
            "free_before_use_ended", "memory is freed, and handed out again, while another stream uses it",
            "host_read_before_copy_ended", "the host reads pinned memory before the copy has ended",
            "kernel_of_its_own", "the second use is a call to the driver by foreign code, declared to Cistern");

    private HazardFigures() {}

    static String found(RawOutput raw) {
        List<Row> rows = raw.json(FOUND);
        Table table = new Table("race", "Cistern", "PyTorch's sanitizer");
        for (String race : rows.stream().map(row -> row.text("race")).distinct().toList()) {
            table.row(RACES.getOrDefault(race, race), answer(rows, race, "cistern"), answer(rows, race, "pytorch"));
        }
        long falseAlarms = Row.where(rows, "correct_reported", "true").size();
        return table.with("False alarms in the correct versions: " + falseAlarms + ". ", raw, FOUND);
    }

    private static String answer(List<Row> rows, String race, String tool) {
        Row row = Row.only(rows, "race", race, "tool", tool);
        return row.text("racy_reported").equals("true") ? "found" : "not found";
    }

    static String costs(RawOutput raw) {
        List<Row> rows = raw.json(COSTS);
        Table table = new Table("host ns an operation", "off", "`cistern.check=streams`");
        for (String trace :
                rows.stream().map(row -> row.text("trace")).distinct().toList()) {
            for (String work : List.of("memset", "none")) {
                table.row(
                        Names.PROGRAMS.get(trace)
                                + (work.equals("none") ? ", allocations only" : ", each block filled"),
                        nanos(rows, trace, work, "off"),
                        nanos(rows, trace, work, "streams"));
            }
        }
        return table.with("Medians, with the lowest and highest of two or three turns. ", raw, COSTS);
    }

    private static String nanos(List<Row> rows, String trace, String work, String check) {
        return Table.spread(Row.where(rows, "trace", trace, "work", work, "check", check), NANOS, "%,.0f");
    }
}
