package io.cistern.spark.columns;

import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/// Runs a function over a data set's partitions as columns on the executors' devices, as Spark's `mapInArrow` does
/// in a Python process.
///
/// ```java
/// Dataset<Row> sums = GpuColumns.map(sales.select("key", "amount"), KeyedSums.SCHEMA, KeyedSums.atLeast(10));
/// ```
public final class GpuColumns {
    /// Rows of a batch, unless the caller says.
    public static final int DEFAULT_BATCH_ROWS = 64 << 10;

    private GpuColumns() {}

    /// Maps with batches of [#DEFAULT_BATCH_ROWS].
    ///
    /// @param input columns of fixed width
    /// @param output the schema of what the function returns
    /// @throws UnsupportedOperationException for a column without a fixed width
    public static Dataset<Row> map(Dataset<Row> input, StructType output, ColumnsFunction function) {
        return map(input, output, function, DEFAULT_BATCH_ROWS);
    }

    /// Maps with batches of some size.
    ///
    /// @param input columns of fixed width
    /// @param output the schema of what the function returns
    /// @param batchRows the most rows of a batch, at least 1
    /// @throws UnsupportedOperationException for a column without a fixed width
    /// @throws IllegalArgumentException if `batchRows` is less than 1
    public static Dataset<Row> map(Dataset<Row> input, StructType output, ColumnsFunction function, int batchRows) {
        if (batchRows < 1) {
            throw new IllegalArgumentException("batchRows is " + batchRows + ", must be at least 1");
        }
        ColumnLayout.types(output);
        ColumnLayout.types(input.schema());
        var classic = (org.apache.spark.sql.classic.Dataset<Row>) input;
        ColumnsPartition partition = new ColumnsPartition(input.schema(), function, batchRows);
        JavaRDD<InternalRow> mapped =
                classic.queryExecution().toRdd().toJavaRDD().mapPartitions(partition);
        return classic.sparkSession().internalCreateDataFrame(mapped.rdd(), output, false);
    }
}
