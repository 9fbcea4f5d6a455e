package io.cistern.examples.spark.columns;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.jspecify.annotations.Nullable;

/// Holds rows as columns in host memory.
///
/// **Threads.** One thread at a time.
final class HostColumns {
    private final List<HostColumn> columns;

    HostColumns(ColumnLayout layout, MemorySegment bytes) {
        columns = IntStream.range(0, layout.columnCount())
                .mapToObj(index -> HostColumn.of(layout, index, bytes))
                .toList();
    }

    /// Begins with row 0.
    void begin() {
        columns.forEach(HostColumn::begin);
    }

    /// Whether the values of variable width of one more row have room.
    boolean fits(InternalRow row) {
        for (HostColumn each : columns) {
            if (each.variableBytes(row) > each.variableBytesLeft()) {
                return false;
            }
        }
        return true;
    }

    /// Returns the most bytes that a value of variable width in a row has.
    long mostVariableBytes(InternalRow row) {
        return columns.stream().mapToLong(each -> each.variableBytes(row)).max().orElse(0);
    }

    /// Writes the next row.
    void write(InternalRow row, long index) {
        for (HostColumn each : columns) {
            each.write(row, index);
        }
    }

    InternalRow read(long index) {
        @Nullable Object[] values = new Object[columns.size()];
        for (int column = 0; column < values.length; column++) {
            values[column] = columns.get(column).read(index);
        }
        return new GenericInternalRow(values);
    }
}
