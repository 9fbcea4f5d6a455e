package io.cistern.examples.spark.engine;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.pressure.SpillableBuffer;
import org.jspecify.annotations.Nullable;

/// Words of 64 bits on a device, or flags or text of a byte each. While no operator runs on a spillable
/// column, it may leave the device.
///
/// **Threads.** One thread at a time; columns that nobody closes meanwhile may be read by several.
public final class Column implements AutoCloseable {
    private final long count;
    private final int width;
    private final long borrowed;
    private final @Nullable DeviceBuffer buffer;
    private final @Nullable SpillableBuffer spillable;

    private Column(
            long count, int width, long borrowed, @Nullable DeviceBuffer buffer, @Nullable SpillableBuffer spillable) {
        this.count = count;
        this.width = width;
        this.borrowed = borrowed;
        this.buffer = buffer;
        this.spillable = spillable;
    }

    /// Returns words or bytes in memory of another owner, which [#close] leaves alone.
    ///
    /// @param width 1 or 8
    public static Column borrowed(long address, long count, int width) {
        return new Column(count, width, address, null, null);
    }

    static Column of(DeviceBuffer buffer, long count, int width) {
        return new Column(count, width, 0, buffer, null);
    }

    static Column of(SpillableBuffer spillable, long count, int width) {
        return new Column(count, width, 0, null, spillable);
    }

    /// Returns the number of rows.
    public long count() {
        return count;
    }

    long byteSize() {
        return count * width;
    }

    int width() {
        return width;
    }

    /// Returns the address of a column that never leaves its device.
    long address() {
        return buffer == null ? borrowed : buffer.address();
    }

    @Nullable
    SpillableBuffer spillable() {
        return spillable;
    }

    @Override
    public void close() {
        if (buffer != null) {
            buffer.close();
        }
        if (spillable != null) {
            spillable.close();
        }
    }
}
