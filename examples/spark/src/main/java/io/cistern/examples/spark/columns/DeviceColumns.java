package io.cistern.examples.spark.columns;

import io.cistern.pressure.SpillableBuffer;
import io.cistern.spark.TaskMemory;
import org.apache.spark.sql.types.StructType;

/// Holds a batch of rows as columns on a task's device, in Arrow's layout: for each column one bit a row that
/// says whether the row has a value, and the values. Strings and binary values lie one after the other; a column
/// of them has offsets, 32-bit integers, one more than rows: a row's value begins at its offset and ends at the next
/// one. A boolean is one bit.
///
/// While the batch is not in [use][#use], it may be spilled to the host and to files.
///
/// **Threads.** Any thread of the task.
public final class DeviceColumns implements AutoCloseable {
    private final TaskMemory memory;
    private final ColumnLayout layout;
    private final SpillableBuffer buffer;
    private final long rowCount;

    DeviceColumns(TaskMemory memory, ColumnLayout layout, SpillableBuffer buffer, long rowCount) {
        this.memory = memory;
        this.layout = layout;
        this.buffer = buffer;
        this.rowCount = rowCount;
    }

    /// Allocates columns of fixed width with undefined bytes in a task's memory. Strings and binary values get no
    /// room.
    ///
    /// @param rowCount number of rows, at least 0
    /// @throws UnsupportedOperationException if a column's type has no place in device columns
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is not enough memory
    public static DeviceColumns allocate(TaskMemory memory, StructType schema, long rowCount) {
        return allocate(memory, schema, rowCount, 0);
    }

    /// Allocates columns with undefined bytes in a task's memory.
    ///
    /// @param rowCount number of rows, at least 0
    /// @param variableBytes the room in bytes of each column of strings or binary values, 0 to 2^31 − 1
    /// @throws IllegalArgumentException if `variableBytes` is out of range
    /// @throws UnsupportedOperationException if a column's type has no place in device columns
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is not enough memory
    public static DeviceColumns allocate(TaskMemory memory, StructType schema, long rowCount, long variableBytes) {
        ColumnLayout layout = new ColumnLayout(schema, rowCount, variableBytes);
        return new DeviceColumns(memory, layout, memory.spillable(layout.byteSize(), 0), rowCount);
    }

    /// Returns the columns' names and types.
    public StructType schema() {
        return layout.schema();
    }

    /// Returns the number of rows.
    public long rowCount() {
        return rowCount;
    }

    /// Returns the number of bytes that the batch takes on the device.
    public long byteSize() {
        return buffer.byteSize();
    }

    ColumnLayout layout() {
        return layout;
    }

    /// Brings the batch to the device and keeps it there until the returned object is closed.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no room; the batch stays
    ///     where it is then
    public Use use() {
        return new Use(buffer.acquire(memory.stream().handle()));
    }

    /// Frees the batch. Closing twice does nothing.
    ///
    /// @throws IllegalStateException if the batch is in use
    @Override
    public void close() {
        memory.close(buffer);
    }

    /// Gives the columns' addresses for work on the task's stream. They are valid until it is closed.
    public final class Use implements AutoCloseable {
        private final SpillableBuffer.Lease lease;

        private Use(SpillableBuffer.Lease lease) {
            this.lease = lease;
        }

        /// Returns the address of the batch.
        public long address() {
            return lease.address();
        }

        /// Returns the address of a column's values.
        ///
        /// @param column the column's index, from 0
        /// @throws IndexOutOfBoundsException if there is no such column
        public long values(int column) {
            return lease.address() + layout.valueOffset(column);
        }

        /// Returns the address of the offsets of a column of strings or binary values: where each row's value begins,
        /// in bytes from [#values], and finally where the last value ends.
        ///
        /// @param column the column's index, from 0
        /// @throws IllegalArgumentException if the column is of fixed width
        /// @throws IndexOutOfBoundsException if there is no such column
        public long offsets(int column) {
            if (layout.offsetsBytes(column) == 0) {
                throw new IllegalArgumentException("column " + column + " is of fixed width and has no offsets");
            }
            return lease.address() + layout.offsetsOffset(column);
        }

        /// Returns the address of a column's bits: 1 for a value, 0 for null. The first row has the lowest bit
        /// of the first byte.
        ///
        /// @param column the column's index, from 0
        /// @throws IndexOutOfBoundsException if there is no such column
        public long validity(int column) {
            return lease.address() + layout.validityOffset(column);
        }

        @Override
        public void close() {
            lease.close();
        }
    }
}
