package io.cistern.spark.columns;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.jspecify.annotations.Nullable;

/// Holds rows as columns in host memory.
///
/// **Threads.** One thread at a time.
final class HostColumns {
    private final ColumnLayout layout;
    private final MemorySegment bytes;

    HostColumns(ColumnLayout layout, MemorySegment bytes) {
        this.layout = layout;
        this.bytes = bytes;
    }

    /// Marks all values as not null.
    void begin() {
        for (int column = 0; column < layout.columnCount(); column++) {
            bytes.asSlice(layout.validityOffset(column), (layout.rowCapacity() + 7) / 8)
                    .fill((byte) 0xff);
        }
    }

    void write(InternalRow row, long index) {
        for (int column = 0; column < layout.columnCount(); column++) {
            if (row.isNullAt(column)) {
                writeNull(column, index);
            } else {
                layout.type(column).write(row, column, values(column), index);
            }
        }
    }

    private void writeNull(int column, long index) {
        long at = layout.validityOffset(column) + index / 8;
        byte bits = bytes.get(ValueLayout.JAVA_BYTE, at);
        bytes.set(ValueLayout.JAVA_BYTE, at, (byte) (bits & ~(1 << index % 8)));
    }

    InternalRow read(long index) {
        @Nullable Object[] values = new Object[layout.columnCount()];
        for (int column = 0; column < values.length; column++) {
            values[column] = isNull(column, index) ? null : layout.type(column).read(values(column), index);
        }
        return new GenericInternalRow(values);
    }

    private boolean isNull(int column, long index) {
        byte bits = bytes.get(ValueLayout.JAVA_BYTE, layout.validityOffset(column) + index / 8);
        return (bits >> index % 8 & 1) == 0;
    }

    private MemorySegment values(int column) {
        return bytes.asSlice(layout.valueOffset(column), layout.valueBytes(column));
    }
}
