package io.cistern.spark.columns;

import io.cistern.CudaStream;
import io.cistern.pressure.SpillableBuffer;
import io.cistern.spark.HostBlock;
import io.cistern.spark.TaskMemory;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.jspecify.annotations.Nullable;

/// Brings rows to the device, a batch for each call of [#next].
final class ColumnsReader implements Iterator<DeviceColumns> {
    private final TaskMemory memory;
    private final ColumnLayout layout;
    private final Iterator<InternalRow> rows;
    private @Nullable HostBlock staging;

    ColumnsReader(TaskMemory memory, ColumnLayout layout, Iterator<InternalRow> rows) {
        this.memory = memory;
        this.layout = layout;
        this.rows = rows;
    }

    @Override
    public boolean hasNext() {
        return rows.hasNext();
    }

    @Override
    public DeviceColumns next() {
        if (!rows.hasNext()) {
            throw new NoSuchElementException("the partition has no more rows");
        }
        HostBlock block = staging();
        HostColumns host = new HostColumns(layout, block.bytes());
        host.begin();
        long count = 0;
        while (count < layout.rowCapacity() && rows.hasNext()) {
            host.write(rows.next(), count++);
        }
        long rowCount = count;
        return memory.<Boolean, DeviceColumns, RuntimeException>retry(
                        true, _ -> List.of(), _ -> upload(block, rowCount))
                .getFirst();
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
