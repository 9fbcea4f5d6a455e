package io.cistern.spark.columns;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/// A type whose values all have one width.
enum FixedType implements ColumnType {
    BOOLEAN(1, (row, at, values, i) -> Bits.set(values, i, row.getBoolean(at)), Bits::get, DataTypes.BooleanType),
    BYTE(
            8,
            (row, at, values, i) -> values.set(ValueLayout.JAVA_BYTE, i, row.getByte(at)),
            (values, i) -> values.get(ValueLayout.JAVA_BYTE, i),
            DataTypes.ByteType),
    SHORT(
            16,
            (row, at, values, i) -> values.setAtIndex(ValueLayout.JAVA_SHORT, i, row.getShort(at)),
            (values, i) -> values.getAtIndex(ValueLayout.JAVA_SHORT, i),
            DataTypes.ShortType),
    /// Dates are days.
    INT(
            32,
            (row, at, values, i) -> values.setAtIndex(ValueLayout.JAVA_INT, i, row.getInt(at)),
            (values, i) -> values.getAtIndex(ValueLayout.JAVA_INT, i),
            DataTypes.IntegerType,
            DataTypes.DateType),
    /// Timestamps are microseconds.
    LONG(
            64,
            (row, at, values, i) -> values.setAtIndex(ValueLayout.JAVA_LONG, i, row.getLong(at)),
            (values, i) -> values.getAtIndex(ValueLayout.JAVA_LONG, i),
            DataTypes.LongType,
            DataTypes.TimestampType),
    FLOAT(
            32,
            (row, at, values, i) -> values.setAtIndex(ValueLayout.JAVA_FLOAT, i, row.getFloat(at)),
            (values, i) -> values.getAtIndex(ValueLayout.JAVA_FLOAT, i),
            DataTypes.FloatType),
    DOUBLE(
            64,
            (row, at, values, i) -> values.setAtIndex(ValueLayout.JAVA_DOUBLE, i, row.getDouble(at)),
            (values, i) -> values.getAtIndex(ValueLayout.JAVA_DOUBLE, i),
            DataTypes.DoubleType);

    private final int bitWidth;
    private final Writer writer;
    private final Reader reader;
    private final List<DataType> sparkTypes;

    @FunctionalInterface
    private interface Writer {
        void write(InternalRow row, int column, MemorySegment values, long index);
    }

    @FunctionalInterface
    private interface Reader {
        Object read(MemorySegment values, long index);
    }

    FixedType(int bitWidth, Writer writer, Reader reader, DataType... sparkTypes) {
        this.bitWidth = bitWidth;
        this.writer = writer;
        this.reader = reader;
        this.sparkTypes = List.of(sparkTypes);
    }

    @Override
    public List<DataType> sparkTypes() {
        return sparkTypes;
    }

    /// Returns the bytes of a number of values.
    long byteSize(long count) {
        return (count * bitWidth + 7) / 8;
    }

    void write(InternalRow row, int column, MemorySegment values, long index) {
        writer.write(row, column, values, index);
    }

    Object read(MemorySegment values, long index) {
        return reader.read(values, index);
    }
}
