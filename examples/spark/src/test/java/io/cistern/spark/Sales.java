package io.cistern.spark;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.sum;

import io.cistern.examples.spark.columns.GpuColumns;
import io.cistern.examples.spark.columns.KeyedSums;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/// A job that a device and a CPU can do: the sum and the number of the sales of each article, of those above a price,
/// in the order of articles.
final class Sales {
    private static final long LEAST = 100;

    private Sales() {}

    /// Sales made of row numbers: every 97th has no key, every 89th no amount.
    static Dataset<Row> of(SparkSession session, long rowCount, long articles, int partitions) {
        return session.range(0, rowCount, 1, partitions)
                .selectExpr(
                        "if(id % 97 = 0, null, (id * 7919) % " + articles + ") as key",
                        "if(id % 89 = 0, null, (id * 104729) % 1000 - 200) as amount");
    }

    static Dataset<Row> sumsOnDevice(Dataset<Row> sales, int partitions, int batchRows) {
        Dataset<Row> parts = GpuColumns.map(sales, KeyedSums.SCHEMA, KeyedSums.atLeast(LEAST), batchRows);
        return GpuColumns.map(
                parts.repartitionByRange(partitions, col("key")), KeyedSums.SCHEMA, KeyedSums.merging(), batchRows);
    }

    static Dataset<Row> sumsOnCpu(Dataset<Row> sales) {
        return sales.filter(col("key").isNotNull().and(col("amount").geq(LEAST)))
                .groupBy("key")
                .agg(sum("amount").as("sum"), count(lit(1)).as("count"))
                .orderBy("key");
    }
}
