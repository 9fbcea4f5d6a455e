package io.cistern.examples.spark.columns;

import io.cistern.spark.TaskMemory;
import java.util.Iterator;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/// Processes one partition: rows → columns → function → rows.
record ColumnsPartition(StructType schema, ColumnsFunction function, int batchRows)
        implements FlatMapFunction<Iterator<InternalRow>, InternalRow> {
    @Override
    public Iterator<InternalRow> call(Iterator<InternalRow> rows) throws Exception {
        TaskMemory memory = TaskMemory.current();
        Iterator<DeviceColumns> batches = new ColumnsReader(memory, ColumnLayout.usual(schema, batchRows), rows);
        Iterator<DeviceColumns> results =
                memory.<Iterator<DeviceColumns>, Exception>call(() -> function.apply(batches, memory));
        return new RowsWriter(memory, results);
    }
}
