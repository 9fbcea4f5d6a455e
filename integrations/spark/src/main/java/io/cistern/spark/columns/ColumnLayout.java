package io.cistern.spark.columns;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/// Places the columns of a batch in one range of bytes, like the body of an Arrow record batch. Each column has
/// one bit a row, 1 if the row is not null, then the values; each part begins at a multiple of 64 bytes.
final class ColumnLayout {
    private static final long ALIGNMENT = 64;

    private final StructType schema;
    private final List<ColumnType> types;
    private final long rowCapacity;
    private final long[] validityOffsets;
    private final long[] valueOffsets;
    private final long byteSize;

    ColumnLayout(StructType schema, long rowCapacity) {
        this.schema = schema;
        this.types = types(schema);
        this.rowCapacity = rowCapacity;
        validityOffsets = new long[types.size()];
        valueOffsets = new long[types.size()];
        long at = 0;
        for (int column = 0; column < types.size(); column++) {
            validityOffsets[column] = at;
            at = aligned(at + (rowCapacity + 7) / 8);
            valueOffsets[column] = at;
            at = aligned(at + rowCapacity * types.get(column).byteWidth());
        }
        byteSize = Math.max(at, ALIGNMENT);
    }

    /// @throws UnsupportedOperationException if a column has no fixed width
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

    long valueOffset(int column) {
        return valueOffsets[column];
    }

    long valueBytes(int column) {
        return rowCapacity * types.get(column).byteWidth();
    }

    long byteSize() {
        return byteSize;
    }
}
