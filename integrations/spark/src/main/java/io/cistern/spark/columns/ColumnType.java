package io.cistern.spark.columns;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/// A column type of fixed width, in Arrow's layout.
enum ColumnType {
    BYTE(1) {
        @Override
        void write(InternalRow row, int column, MemorySegment values, long index) {
            values.set(ValueLayout.JAVA_BYTE, index, row.getByte(column));
        }

        @Override
        Object read(MemorySegment values, long index) {
            return values.get(ValueLayout.JAVA_BYTE, index);
        }
    },
    SHORT(2) {
        @Override
        void write(InternalRow row, int column, MemorySegment values, long index) {
            values.setAtIndex(ValueLayout.JAVA_SHORT, index, row.getShort(column));
        }

        @Override
        Object read(MemorySegment values, long index) {
            return values.getAtIndex(ValueLayout.JAVA_SHORT, index);
        }
    },
    /// Also dates, in days.
    INT(4) {
        @Override
        void write(InternalRow row, int column, MemorySegment values, long index) {
            values.setAtIndex(ValueLayout.JAVA_INT, index, row.getInt(column));
        }

        @Override
        Object read(MemorySegment values, long index) {
            return values.getAtIndex(ValueLayout.JAVA_INT, index);
        }
    },
    /// Also timestamps, in microseconds.
    LONG(8) {
        @Override
        void write(InternalRow row, int column, MemorySegment values, long index) {
            values.setAtIndex(ValueLayout.JAVA_LONG, index, row.getLong(column));
        }

        @Override
        Object read(MemorySegment values, long index) {
            return values.getAtIndex(ValueLayout.JAVA_LONG, index);
        }
    },
    FLOAT(4) {
        @Override
        void write(InternalRow row, int column, MemorySegment values, long index) {
            values.setAtIndex(ValueLayout.JAVA_FLOAT, index, row.getFloat(column));
        }

        @Override
        Object read(MemorySegment values, long index) {
            return values.getAtIndex(ValueLayout.JAVA_FLOAT, index);
        }
    },
    DOUBLE(8) {
        @Override
        void write(InternalRow row, int column, MemorySegment values, long index) {
            values.setAtIndex(ValueLayout.JAVA_DOUBLE, index, row.getDouble(column));
        }

        @Override
        Object read(MemorySegment values, long index) {
            return values.getAtIndex(ValueLayout.JAVA_DOUBLE, index);
        }
    };

    private final int byteWidth;

    ColumnType(int byteWidth) {
        this.byteWidth = byteWidth;
    }

    int byteWidth() {
        return byteWidth;
    }

    abstract void write(InternalRow row, int column, MemorySegment values, long index);

    abstract Object read(MemorySegment values, long index);

    /// @throws UnsupportedOperationException if the type has no fixed width
    static ColumnType of(String column, DataType type) {
        if (type.equals(DataTypes.LongType) || type.equals(DataTypes.TimestampType)) {
            return LONG;
        }
        if (type.equals(DataTypes.IntegerType) || type.equals(DataTypes.DateType)) {
            return INT;
        }
        if (type.equals(DataTypes.DoubleType)) {
            return DOUBLE;
        }
        if (type.equals(DataTypes.FloatType)) {
            return FLOAT;
        }
        if (type.equals(DataTypes.ShortType)) {
            return SHORT;
        }
        if (type.equals(DataTypes.ByteType)) {
            return BYTE;
        }
        throw new UnsupportedOperationException("column '" + column + "' is of type " + type.simpleString()
                + ", which has no place in device columns; legal: bigint, int, smallint, tinyint, double, float, date,"
                + " timestamp");
    }
}
