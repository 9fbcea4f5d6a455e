package io.cistern.spark.columns;

import io.cistern.pressure.SpillableBuffer;
import io.cistern.spark.TaskMemory;
import org.apache.spark.sql.types.StructType;

/// A batch of rows as columns on a task's device, in Arrow's layout: for each column a bit a row that says whether it
/// has a value, and the values. Columns are of fixed width.
///
/// While nobody [uses][#use] it, it may leave the device for the host and for files.
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

    /// Allocates columns with undefined bytes, in the memory of a task.
    ///
    /// @param rowCount at least 0
    /// @throws UnsupportedOperationException for a column without a fixed width
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory
    public static DeviceColumns allocate(TaskMemory memory, StructType schema, long rowCount) {
        ColumnLayout layout = new ColumnLayout(schema, rowCount);
        return new DeviceColumns(memory, layout, memory.spillable(layout.byteSize(), 0), rowCount);
    }

    /// Returns the columns' names and types.
    public StructType schema() {
        return layout.schema();
    }

    /// Returns how many rows there are.
    public long rowCount() {
        return rowCount;
    }

    /// Returns the bytes that it takes on the device.
    public long byteSize() {
        return buffer.byteSize();
    }

    ColumnLayout layout() {
        return layout;
    }

    /// Brings it to the device, and keeps it there until what is returned is closed.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no room for it; it stays where it is then
    public Use use() {
        return new Use(buffer.acquire(memory.stream().handle()));
    }

    /// Frees it. Closing twice does nothing.
    ///
    /// @throws IllegalStateException while it is in use
    @Override
    public void close() {
        memory.close(buffer);
    }

    /// The columns' addresses, valid until it is closed, for work on the task's stream.
    public final class Use implements AutoCloseable {
        private final SpillableBuffer.Lease lease;

        private Use(SpillableBuffer.Lease lease) {
            this.lease = lease;
        }

        /// Returns where the batch begins.
        public long address() {
            return lease.address();
        }

        /// Returns where a column's values begin.
        ///
        /// @param column from 0
        /// @throws IndexOutOfBoundsException if there is no such column
        public long values(int column) {
            return lease.address() + layout.valueOffset(column);
        }

        /// Returns where a column's bits begin, the lowest of the first byte for the first row: 1 for a value, 0
        /// for null.
        ///
        /// @param column from 0
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
