package io.cistern.examples.spark.columns;

import io.cistern.CudaStream;
import io.cistern.pressure.SpillableBuffer;
import io.cistern.spark.HostBlock;
import io.cistern.spark.TaskMemory;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.jspecify.annotations.Nullable;

/// Brings rows to the device, a batch for each call to [#next].
final class ColumnsReader implements Iterator<DeviceColumns> {
    private final TaskMemory memory;
    private final Iterator<InternalRow> rows;
    private ColumnLayout layout;
    private @Nullable HostBlock staging;

    /// A row that the last batch had no room for.
    private @Nullable InternalRow waiting;

    ColumnsReader(TaskMemory memory, ColumnLayout layout, Iterator<InternalRow> rows) {
        this.memory = memory;
        this.layout = layout;
        this.rows = rows;
    }

    @Override
    public boolean hasNext() {
        return waiting != null || rows.hasNext();
    }

    @Override
    public DeviceColumns next() {
        if (!hasNext()) {
            throw new NoSuchElementException("the partition has no more rows");
        }
        HostColumns host = begun();
        long count = 0;
        while (count < layout.rowCapacity() && hasNext()) {
            InternalRow row = waiting != null ? waiting : rows.next();
            if (!host.fits(row)) {
                waiting = waiting != null ? waiting : row.copy(); // the iterator may use the row again
                if (count > 0) {
                    break;
                }
                makeRoom(host.mostVariableBytes(row));
                host = begun();
                continue;
            }
            host.write(row, count++);
            waiting = null;
        }
        HostBlock block = staging();
        long rowCount = count;
        return memory.<Boolean, DeviceColumns, RuntimeException>retry(
                        true, _ -> List.of(), _ -> upload(block, rowCount))
                .getFirst();
    }

    private HostColumns begun() {
        HostColumns host = new HostColumns(layout, staging().bytes());
        host.begin();
        return host;
    }

    /// Makes the batches from here on large enough for a value.
    private void makeRoom(long valueBytes) {
        layout = layout.withRoomFor(valueBytes);
        if (staging != null) {
            staging.close();
            staging = null;
        }
    }

    private HostBlock staging() {
        if (staging == null) {
            staging = memory.hostBlock(layout.byteSize());
        }
        return staging;
    }

    private DeviceColumns upload(HostBlock block, long rowCount) {
        SpillableBuffer buffer = memory.spillable(layout.byteSize(), 0);
        DeviceColumns columns = new DeviceColumns(memory, layout, buffer, rowCount);
        try {
            copy(block, columns);
            return columns;
        } catch (RuntimeException | Error failure) {
            columns.close(); // a retry begins with other columns
            throw failure;
        }
    }

    private void copy(HostBlock block, DeviceColumns columns) {
        try (DeviceColumns.Use use = columns.use()) {
            CudaStream stream = memory.stream();
            memory.memory()
                    .driver()
                    .copies()
                    .toDevice(memory.device(), use.address(), block.bytes(), layout.byteSize(), stream.handle());
            stream.synchronize(); // the next batch is written to the same host memory
        }
    }
}
