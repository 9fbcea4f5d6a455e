package io.cistern.cli.top;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.TextTable;
import io.cistern.observability.MemoryFigures;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// Formats readings as text for people.
final class TopTable {
    private static final Pattern BOLD = Pattern.compile("\u001b\\[[\\d;]*m");

    private TopTable() {}

    /// Returns the devices, followed by a table of the allocators.
    ///
    /// @param width letters in a line; columns that have no room are left out, but not the one that sorts
    static String format(List<Reading> readings, List<Row> rows, Column sort, boolean reversed, int width) {
        StringBuilder text = new StringBuilder();
        for (Reading reading : readings) {
            String memory = readings.size() > 1 ? reading.memory() + ": " : "";
            reading.figures().devices().forEach(device -> text.append(memory).append(line(device)));
        }
        List<Row> sorted = rows.stream()
                .sorted(reversed ? sort.order().reversed() : sort.order())
                .toList();
        List<Column> columns = filled(readings.size() > 1, rows);
        String table = table(columns, sorted, sort);
        for (Column each : Column.DISPENSABLE) {
            if (widthOf(table) > width && each != sort) {
                columns.remove(each);
                table = table(columns, sorted, sort);
            }
        }
        text.append('\n').append(table);
        if (columns.contains(Column.HITS)) {
            tiers(rows)
                    .forEach(names -> text.append("hits %: of the requests that reach ")
                            .append(names)
                            .append('\n'));
        }
        return text.toString();
    }

    /// Returns the letters of the longest line, without the codes that make headings bold.
    private static int widthOf(String table) {
        return table.lines()
                .mapToInt(line -> BOLD.matcher(line).replaceAll("").length())
                .max()
                .orElse(0);
    }

    private static List<String> tiers(List<Row> rows) {
        return rows.stream()
                .map(row -> row.figures().tiers().stream()
                        .map(MemoryFigures.TierHits::tier)
                        .collect(Collectors.joining(" / ")))
                .filter(names -> !names.isEmpty())
                .distinct()
                .toList();
    }

    /// Returns the columns that say anything.
    private static List<Column> filled(boolean manyMemories, List<Row> rows) {
        List<Column> columns = new ArrayList<>(List.of(Column.values()));
        if (!manyMemories) {
            columns.remove(Column.MEMORY);
        }
        if (rows.stream().allMatch(row -> row.figures().pool().isEmpty())) {
            columns.remove(Column.POOL);
        }
        return columns;
    }

    private static String line(MemoryFigures.OfDevice device) {
        return "gpu " + device.device() + " " + device.name() + ": " + Column.bytes(device.totalBytes()) + ", "
                + (device.freeBytes() < 0 ? "free memory unknown" : Column.bytes(device.freeBytes()) + " free") + "\n";
    }

    private static String table(List<Column> columns, List<Row> rows, Column sort) {
        long most = columns.stream()
                .flatMapToLong(column -> rows.stream().mapToLong(column::bytes))
                .max()
                .orElse(0);
        String unit = ByteSize.unit(most);
        long byteSize = ByteSize.parse("1" + unit);
        return TextTable.format(
                List.of(
                        columns.stream()
                                .map(column -> column.isBytes() ? unit : "")
                                .toList(),
                        columns.stream()
                                .map(column -> column.heading() + (column == sort ? "*" : ""))
                                .toList()),
                rows.stream()
                        .map(row -> columns.stream()
                                .map(column -> column.cell(row, byteSize))
                                .toList())
                        .toList(),
                (int) columns.stream()
                        .filter(column -> column.compareTo(Column.POOL) <= 0)
                        .count());
    }

    static String format(List<WaitingThread> waiting) {
        return waiting.isEmpty()
                ? "no thread waits in Cistern\n"
                : waiting.stream()
                        .map(thread -> thread.name() + "  " + thread.state() + "  " + thread.in() + "\n")
                        .collect(Collectors.joining("", "threads that wait in Cistern:\n", ""));
    }
}
