package io.cistern.cli.top;

import io.cistern.cli.common.TextTable;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;

/// Formats readings as text for people.
final class TopTable {
    private TopTable() {}

    /// Returns the devices, followed by a table of the allocators.
    static String format(List<Reading> readings, List<Row> rows, Column sort, boolean reversed) {
        StringBuilder text = new StringBuilder();
        for (Reading reading : readings) {
            String memory = readings.size() > 1 ? reading.memory() + ": " : "";
            reading.devices().forEach(device -> text.append(memory).append(line(device)));
        }
        text.append('\n').append(table(readings.size() > 1, rows, sort, reversed));
        List<String> tiers = rows.stream()
                .map(row -> String.join(" / ", row.figures().hitPercents().keySet()))
                .filter(names -> !names.isEmpty())
                .distinct()
                .toList();
        tiers.forEach(names -> text.append("hits %, of the requests that reach each tier: ")
                .append(names)
                .append('\n'));
        return text.toString();
    }

    private static String line(Reading.OfDevice device) {
        return "gpu " + device.device() + " " + device.name() + ": " + Column.bytes(device.totalBytes()) + ", "
                + (device.freeBytes() < 0 ? "not used yet" : Column.bytes(device.freeBytes()) + " free") + "\n";
    }

    private static String table(boolean manyMemories, List<Row> rows, Column sort, boolean reversed) {
        List<Column> columns = Arrays.stream(Column.values())
                .filter(column -> column != Column.MEMORY || manyMemories)
                .toList();
        Comparator<Row> order = reversed ? sort.order().reversed() : sort.order();
        return TextTable.format(
                List.of(columns.stream()
                        .map(column -> column.heading() + (column == sort ? "*" : ""))
                        .toList()),
                rows.stream()
                        .sorted(order)
                        .map(row ->
                                columns.stream().map(column -> column.cell(row)).toList())
                        .toList(),
                Column.LEFT_ALIGNED - (manyMemories ? 0 : 1));
    }

    /// Lists the waiting threads.
    static String format(List<WaitingThread> waiting) {
        return waiting.isEmpty()
                ? "no thread waits in Cistern\n"
                : waiting.stream()
                        .map(thread -> thread.name() + "  " + thread.state() + "  " + thread.in() + "\n")
                        .collect(Collectors.joining("", "threads that wait in Cistern:\n", ""));
    }
}
