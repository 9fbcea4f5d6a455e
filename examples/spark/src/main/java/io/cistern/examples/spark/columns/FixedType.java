package io.cistern.examples.spark.columns;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/// A type whose values all have one width.
record FixedType(int bitWidth, Writer writer, Reader reader, List<DataType> sparkTypes) implements ColumnType {
    private static final FixedType BOOLEAN = new FixedType(
            1,
            (row, at, values, i) -> Bits.set(values, i, row.getBoolean(at)),
            Bits::get,
            List.of(DataTypes.BooleanType));
    private static final FixedType BYTE = new FixedType(
            8,
            (row, at, values, i) -> values.set(ValueLayout.JAVA_BYTE, i, row.getByte(at)),
            (values, i) -> values.get(ValueLayout.JAVA_BYTE, i),
            List.of(DataTypes.ByteType));
    private static final FixedType SHORT = new FixedType(
            16,
            (row, at, values, i) -> values.setAtIndex(ValueLayout.JAVA_SHORT, i, row.getShort(at)),
            (values, i) -> values.getAtIndex(ValueLayout.JAVA_SHORT, i),
            List.of(DataTypes.ShortType));
    /// Dates are days.
    private static final FixedType INT = new FixedType(
            32,
            (row, at, values, i) -> values.setAtIndex(ValueLayout.JAVA_INT, i, row.getInt(at)),
            (values, i) -> values.getAtIndex(ValueLayout.JAVA_INT, i),
            List.of(DataTypes.IntegerType, DataTypes.DateType));
    /// Timestamps are microseconds.
    private static final FixedType LONG = new FixedType(
            64,
            (row, at, values, i) -> values.setAtIndex(ValueLayout.JAVA_LONG, i, row.getLong(at)),
            (values, i) -> values.getAtIndex(ValueLayout.JAVA_LONG, i),
            List.of(DataTypes.LongType, DataTypes.TimestampType));
    private static final FixedType FLOAT = new FixedType(
            32,
            (row, at, values, i) -> values.setAtIndex(ValueLayout.JAVA_FLOAT, i, row.getFloat(at)),
            (values, i) -> values.getAtIndex(ValueLayout.JAVA_FLOAT, i),
            List.of(DataTypes.FloatType));
    private static final FixedType DOUBLE = new FixedType(
            64,
            (row, at, values, i) -> values.setAtIndex(ValueLayout.JAVA_DOUBLE, i, row.getDouble(at)),
            (values, i) -> values.getAtIndex(ValueLayout.JAVA_DOUBLE, i),
            List.of(DataTypes.DoubleType));

    static final List<FixedType> ALL = List.of(BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE);

    @FunctionalInterface
    interface Writer {
        void write(InternalRow row, int column, MemorySegment values, long index);
    }

    @FunctionalInterface
    interface Reader {
        Object read(MemorySegment values, long index);
    }

    /// Returns the bytes of a number of values.
    long byteSize(long count) {
        return Bits.byteSize(count * bitWidth);
    }
}
