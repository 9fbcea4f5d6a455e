package io.cistern.examples.spark.columns;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/// A type whose values have any number of bytes.
enum VariableType implements ColumnType {
    /// In UTF-8.
    STRING {
        @Override
        public List<DataType> sparkTypes() {
            return List.of(DataTypes.StringType);
        }

        @Override
        int byteLength(InternalRow row, int column) {
            return row.getUTF8String(column).numBytes();
        }

        @Override
        byte[] bytes(InternalRow row, int column) {
            return row.getUTF8String(column).getBytes();
        }

        @Override
        Object value(byte[] bytes) {
            return UTF8String.fromBytes(bytes);
        }
    },
    BINARY {
        @Override
        public List<DataType> sparkTypes() {
            return List.of(DataTypes.BinaryType);
        }

        @Override
        int byteLength(InternalRow row, int column) {
            return row.getBinary(column).length;
        }

        @Override
        byte[] bytes(InternalRow row, int column) {
            return row.getBinary(column);
        }

        @Override
        Object value(byte[] bytes) {
            return bytes;
        }
    };

    /// Returns how many bytes a value has that is not null.
    abstract int byteLength(InternalRow row, int column);

    /// Returns the bytes of a value that is not null.
    abstract byte[] bytes(InternalRow row, int column);

    /// Returns Spark's form of a value.
    abstract Object value(byte[] bytes);
}
