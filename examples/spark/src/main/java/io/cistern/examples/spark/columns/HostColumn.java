package io.cistern.examples.spark.columns;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.apache.spark.sql.catalyst.InternalRow;
import org.jspecify.annotations.Nullable;

/// One column of [HostColumns].
///
/// ```
/// fixed width     validity bits │ values
/// variable        validity bits │ offsets: rows + 1 integers │ bytes; value i is bytes [offsets i, offsets i+1)
/// ```
abstract sealed class HostColumn {
    final int index;
    private final MemorySegment validity;

    private HostColumn(int index, MemorySegment validity) {
        this.index = index;
        this.validity = validity;
    }

    static HostColumn of(ColumnLayout layout, int index, MemorySegment bytes) {
        MemorySegment validity = bytes.asSlice(layout.validityOffset(index), Bits.byteSize(layout.rowCapacity()));
        MemorySegment values = bytes.asSlice(layout.valueOffset(index), layout.valueBytes(index));
        return switch (layout.type(index)) {
            case FixedType type -> new Fixed(index, validity, type, values);
            case VariableType type ->
                new Variable(
                        index,
                        validity,
                        type,
                        bytes.asSlice(layout.offsetsOffset(index), layout.offsetsBytes(index)),
                        values);
        };
    }

    /// Marks all rows as having a value, and begins with row 0.
    void begin() {
        validity.fill((byte) 0xff);
    }

    /// Returns the bytes that a row's value needs of the room for values of variable width.
    abstract long variableBytes(InternalRow row);

    /// Returns how many of these bytes are left.
    abstract long variableBytesLeft();

    void write(InternalRow row, long at) {
        if (row.isNullAt(index)) {
            Bits.set(validity, at, false);
            writeNull(at);
        } else {
            writeValue(row, at);
        }
    }

    @Nullable
    Object read(long at) {
        return Bits.get(validity, at) ? readValue(at) : null;
    }

    abstract void writeNull(long at);

    abstract void writeValue(InternalRow row, long at);

    abstract Object readValue(long at);

    private static final class Fixed extends HostColumn {
        private final FixedType type;
        private final MemorySegment values;

        Fixed(int index, MemorySegment validity, FixedType type, MemorySegment values) {
            super(index, validity);
            this.type = type;
            this.values = values;
        }

        @Override
        long variableBytes(InternalRow row) {
            return 0;
        }

        @Override
        long variableBytesLeft() {
            return Long.MAX_VALUE;
        }

        @Override
        void writeNull(long at) {}

        @Override
        void writeValue(InternalRow row, long at) {
            type.writer().write(row, index, values, at);
        }

        @Override
        Object readValue(long at) {
            return type.reader().read(values, at);
        }
    }

    /// Rows are written in their order.
    private static final class Variable extends HostColumn {
        private final VariableType type;
        private final MemorySegment offsets;
        private final MemorySegment values;

        /// Where the next value begins: the offset after the last row.
        private int end;

        Variable(int index, MemorySegment validity, VariableType type, MemorySegment offsets, MemorySegment values) {
            super(index, validity);
            this.type = type;
            this.offsets = offsets;
            this.values = values;
        }

        @Override
        void begin() {
            super.begin();
            end = 0;
            offsets.setAtIndex(ValueLayout.JAVA_INT, 0, 0);
        }

        @Override
        long variableBytes(InternalRow row) {
            return row.isNullAt(index) ? 0 : type.byteLength(row, index);
        }

        @Override
        long variableBytesLeft() {
            return values.byteSize() - end;
        }

        @Override
        void writeNull(long at) {
            offsets.setAtIndex(ValueLayout.JAVA_INT, at + 1, end);
        }

        @Override
        void writeValue(InternalRow row, long at) {
            byte[] bytes = type.bytes(row, index);
            MemorySegment.copy(bytes, 0, values, ValueLayout.JAVA_BYTE, end, bytes.length);
            end += bytes.length;
            offsets.setAtIndex(ValueLayout.JAVA_INT, at + 1, end);
        }

        @Override
        Object readValue(long at) {
            int from = offsets.getAtIndex(ValueLayout.JAVA_INT, at);
            int to = offsets.getAtIndex(ValueLayout.JAVA_INT, at + 1);
            return type.value(values.asSlice(from, to - from).toArray(ValueLayout.JAVA_BYTE));
        }
    }
}
