package io.cistern.benchmarks.figures;

import io.cistern.benchmarks.Samples;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Makes the tables of the ten queries.
final class QueryFigures {
    private static final String FILE = "queries.jsonl";
    private static final String ALL = "all";
    private static final double GIB = 1L << 30;
    private static final Map<String, String> ALLOCATORS = new LinkedHashMap<>();
    private static final Map<String, String> MODES = new LinkedHashMap<>();

    static {
        ALLOCATORS.put("direct", "`direct`");
        ALLOCATORS.put("async:release_threshold=zero", "`async`, zero");
        ALLOCATORS.put("async:release_threshold=adaptive", "`async`, adaptive");
        ALLOCATORS.put("async:release_threshold=keep_all", "`async`, keep_all");
        ALLOCATORS.put("library", "the driver's pool in C++");
        ALLOCATORS.put("caching", "`caching`");
        MODES.put("one", "one thread");
        MODES.put("eight", "eight threads");
        MODES.put("short", "memory short");
    }

    private QueryFigures() {}

    /// Returns the time of each query from one thread.
    static String byQuery(RawOutput raw) {
        List<Row> rows = Row.where(raw.json(FILE), "mode", "one");
        Table table = new Table(header("milliseconds"));
        rows.stream()
                .filter(row -> row.has("query"))
                .map(row -> row.text("query"))
                .distinct()
                .forEach(query -> table.row(Stream.concat(
                                Stream.of(query.equals(ALL) ? "all ten" : query),
                                cells(rows, query, "seconds", 1e3).stream())
                        .toList()));
        return table + ending(raw, rows);
    }

    /// Returns the time of all queries, and what that takes, for one thread and for several.
    static String together(RawOutput raw) {
        List<Row> all = Row.where(raw.json(FILE), "query", ALL);
        Table table = new Table(header(""));
        MODES.forEach((mode, name) -> {
            List<Row> rows = Row.where(all, "mode", mode);
            row(table, name + ": seconds", cells(rows, ALL, "seconds", 1));
            row(table, name + ": in the allocator", cells(rows, ALL, "allocatorSeconds", 1));
            row(table, name + ": GiB at most", cells(rows, ALL, "mostBytes", 1 / GIB));
        });
        row(table, "memory short: GiB spilled", cells(Row.where(all, "mode", "short"), ALL, "spilledBytes", 1 / GIB));
        return table + ending(raw, all);
    }

    private static String[] header(String first) {
        return Stream.concat(Stream.of(first), ALLOCATORS.values().stream()).toArray(String[]::new);
    }

    private static void row(Table table, String name, List<String> cells) {
        table.row(Stream.concat(Stream.of(name), cells.stream()).toList());
    }

    /// Returns an allocator's median and spread in each cell.
    private static List<String> cells(List<Row> rows, String query, String field, double factor) {
        return ALLOCATORS.keySet().stream()
                .map(each -> cell(Row.where(rows, "allocator", each, "query", query), field, factor))
                .toList();
    }

    private static String cell(List<Row> rows, String field, double factor) {
        if (rows.isEmpty()) {
            return "";
        }
        Samples values = Row.samples(rows, field).times(factor);
        double spread = (values.most() - values.least()) / 2;
        return Table.rounded(values.median()) + (spread == 0 ? "" : " ± " + Table.rounded(spread));
    }

    private static String ending(RawOutput raw, List<Row> rows) {
        if (rows.stream().anyMatch(row -> !row.textOr("right", "true").equals("true"))) {
            throw new IllegalStateException(FILE + " has wrong results");
        }
        String turns = MODES.entrySet().stream()
                .filter(mode -> !Row.where(rows, "mode", mode.getKey()).isEmpty())
                .map(mode -> turns(Row.where(rows, "mode", mode.getKey())) + " with " + mode.getValue())
                .collect(Collectors.joining(", "));
        return Table.format(
                "%nMedians of alternating runs (%s), ± half of their range. Every result equals DuckDB's. %s.%n",
                turns, raw.source(FILE));
    }

    private static long turns(List<Row> rows) {
        return rows.stream().map(row -> row.textOr("turn", "")).distinct().count();
    }
}
