package io.cistern.examples.spark.columns;

import java.util.List;

/// Some consecutive rows of a batch.
///
/// @param first the first row, a multiple of 8 so that its bit begins a byte
record RowRange(DeviceColumns columns, long first, long count) {
    private static final long MIN_ROWS = 64;

    static RowRange all(DeviceColumns columns) {
        return new RowRange(columns, 0, columns.rowCount());
    }

    /// Returns the two halves; empty if the range is too short to be cut.
    List<RowRange> halves() {
        long half = count / 2 / 8 * 8;
        return count < MIN_ROWS
                ? List.of()
                : List.of(new RowRange(columns, first, half), new RowRange(columns, first + half, count - half));
    }
}
