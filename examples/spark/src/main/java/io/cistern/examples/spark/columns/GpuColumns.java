package io.cistern.examples.spark.columns;

import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/// Runs a function over the partitions of a data set, as columns on the executors' devices. Spark's
/// `mapInArrow` does the same in a Python process.
///
/// ```java
/// Dataset<Row> sums = GpuColumns.map(sales.select("key", "amount"), KeyedSums.SCHEMA, KeyedSums.atLeast(10));
/// ```
public final class GpuColumns {
    /// Rows in a batch by default.
    public static final int DEFAULT_BATCH_ROWS = 64 << 10;

    private GpuColumns() {}

    /// Maps a data set in batches of [#DEFAULT_BATCH_ROWS] rows.
    ///
    /// @param input a data set with columns of [these types][DeviceColumns]
    /// @param output the schema of the function's results
    /// @throws UnsupportedOperationException if a column's type has no place in device columns
    public static Dataset<Row> map(Dataset<Row> input, StructType output, ColumnsFunction function) {
        return map(input, output, function, DEFAULT_BATCH_ROWS);
    }

    /// Maps a data set in batches of a given size.
    ///
    /// @param input a data set with columns of [these types][DeviceColumns]
    /// @param output the schema of the function's results
    /// @param batchRows the most rows of a batch, at least 1
    /// @throws UnsupportedOperationException if a column's type has no place in device columns
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
