package io.cistern.examples.spark.columns;

import io.cistern.CudaStream;
import io.cistern.spark.HostBlock;
import io.cistern.spark.TaskMemory;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.jspecify.annotations.Nullable;

/// Brings batches back to the host as rows, and closes the batches.
final class RowsWriter implements Iterator<InternalRow> {
    private final TaskMemory memory;
    private final Iterator<DeviceColumns> batches;
    private @Nullable HostBlock block;
    private @Nullable HostColumns host;
    private long index;
    private long rowCount;

    RowsWriter(TaskMemory memory, Iterator<DeviceColumns> batches) {
        this.memory = memory;
        this.batches = batches;
    }

    @Override
    public boolean hasNext() {
        while (index == rowCount && hasNextBatch()) {
            DeviceColumns next = memory.<DeviceColumns, RuntimeException>call(batches::next);
            download(next);
            next.close();
        }
        return index < rowCount;
    }

    private boolean hasNextBatch() {
        return memory.<Boolean, RuntimeException>call(batches::hasNext);
    }

    private void download(DeviceColumns columns) {
        if (block != null) {
            block.close();
        }
        HostBlock target = memory.hostBlock(columns.byteSize());
        memory.<Boolean, Boolean, RuntimeException>retry(true, _ -> List.of(), _ -> {
            copy(columns, target);
            return true;
        });
        block = target;
        host = new HostColumns(columns.layout(), target.bytes());
        index = 0;
        rowCount = columns.rowCount();
    }

    private void copy(DeviceColumns columns, HostBlock target) {
        try (DeviceColumns.Use use = columns.use()) {
            CudaStream stream = memory.stream();
            memory.memory()
                    .driver()
                    .copies()
                    .toHost(memory.device(), target.bytes(), use.address(), columns.byteSize(), stream.handle());
            stream.synchronize();
        }
    }

    @Override
    public InternalRow next() {
        if (!hasNext() || host == null) {
            throw new NoSuchElementException("the partition has no more rows");
        }
        return host.read(index++);
    }
}
