package io.cistern.spark.columns;

import io.cistern.pressure.SpillableBuffer;
import io.cistern.spark.TaskMemory;
import org.apache.spark.sql.types.StructType;

/// Holds a batch of rows as columns on a task's device, in Arrow's layout: for each column one bit a row that
/// says whether the row has a value, and the values. Columns are of fixed width.
///
/// While nobody [uses][#use] the batch, it may leave the device for the host and for files.
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

    /// Allocates columns with undefined bytes in a task's memory.
    ///
    /// @param rowCount number of rows, at least 0
    /// @throws UnsupportedOperationException if a column has no fixed width
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is not enough memory
    public static DeviceColumns allocate(TaskMemory memory, StructType schema, long rowCount) {
        ColumnLayout layout = new ColumnLayout(schema, rowCount);
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
