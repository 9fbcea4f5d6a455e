package io.cistern.examples.spark.columns;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/// Places the columns of a batch in one range of bytes, like the body of an Arrow record batch. Each column has
/// one bit a row, 1 if the row is not null; offsets of the rows' values if these have any number of bytes; and the
/// values. Each part begins at a multiple of 64 bytes.
final class ColumnLayout {
    private static final long ALIGNMENT = 64;

    /// The room in a batch for values of variable width, in each such column: that many bytes a row.
    private static final long USUAL_VARIABLE_BYTES = 32;

    private final StructType schema;
    private final List<ColumnType> types;
    private final long rowCapacity;
    private final long variableBytes;
    private final long[] validityOffsets;
    private final long[] offsetsOffsets;
    private final long[] valueOffsets;
    private final long byteSize;

    /// @param variableBytes the bytes for the values of each column of variable width, at most 2^31 − 1
    /// @throws IllegalArgumentException if `variableBytes` is out of range
    ColumnLayout(StructType schema, long rowCapacity, long variableBytes) {
        if (variableBytes < 0 || variableBytes > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "a column of variable width has room for 0 to 2^31 - 1 bytes, not " + variableBytes);
        }
        this.schema = schema;
        this.types = types(schema);
        this.rowCapacity = rowCapacity;
        this.variableBytes = variableBytes;
        validityOffsets = new long[types.size()];
        offsetsOffsets = new long[types.size()];
        valueOffsets = new long[types.size()];
        long at = 0;
        for (int column = 0; column < types.size(); column++) {
            validityOffsets[column] = at;
            at = aligned(at + Bits.byteSize(rowCapacity));
            offsetsOffsets[column] = at;
            at = aligned(at + offsetsBytes(column));
            valueOffsets[column] = at;
            at = aligned(at + valueBytes(column));
        }
        byteSize = Math.max(at, ALIGNMENT);
    }

    /// Returns the layout of batches of a number of rows of usual width.
    static ColumnLayout usual(StructType schema, long rowCapacity) {
        return new ColumnLayout(schema, rowCapacity, Math.min(rowCapacity * USUAL_VARIABLE_BYTES, Integer.MAX_VALUE));
    }

    /// Returns the layout with room for a value of that many bytes.
    ColumnLayout withRoomFor(long valueBytes) {
        return new ColumnLayout(schema, rowCapacity, Math.max(variableBytes, valueBytes));
    }

    /// @throws UnsupportedOperationException if a column's type has no place in device columns
    static List<ColumnType> types(StructType schema) {
        List<ColumnType> types = new ArrayList<>();
        for (StructField field : schema.fields()) {
            types.add(ColumnType.of(field.name(), field.dataType()));
        }
        return List.copyOf(types);
    }

    private static long aligned(long at) {
        return (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }

    StructType schema() {
        return schema;
    }

    int columnCount() {
        return types.size();
    }

    ColumnType type(int column) {
        return types.get(column);
    }

    long rowCapacity() {
        return rowCapacity;
    }

    long validityOffset(int column) {
        return validityOffsets[column];
    }

    /// Where the offsets of a column of variable width begin.
    long offsetsOffset(int column) {
        return offsetsOffsets[column];
    }

    /// The bytes of these offsets; 0 for a column of fixed width.
    long offsetsBytes(int column) {
        return types.get(column) instanceof VariableType ? (rowCapacity + 1) * Integer.BYTES : 0;
    }

    long valueOffset(int column) {
        return valueOffsets[column];
    }

    long valueBytes(int column) {
        return switch (types.get(column)) {
            case FixedType fixed -> fixed.byteSize(rowCapacity);
            case VariableType _ -> variableBytes;
        };
    }

    long byteSize() {
        return byteSize;
    }
}
