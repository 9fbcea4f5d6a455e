package io.cistern.examples.spark;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.sum;

import io.cistern.examples.spark.columns.GpuColumns;
import io.cistern.examples.spark.columns.KeyedSums;
import java.io.IOException;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/// Sums the sales of each article on the executors' devices, and on the CPU for comparison. The columns go to
/// the device, which filters, groups by a hash table and sorts.
///
/// `spark-submit` runs it on a cluster. Without a cluster it runs in this process on the simulated GPU, whose
/// 64 MiB are less than the job needs, so that it spills and splits. With the argument `stay` it repeats the job
/// until it is stopped, so that you can look at the tab "GPU Memory" at the address that it prints, and kill an
/// executor meanwhile.
public final class SalesByArticle {
    private static final int LEAST = 100;

    private SalesByArticle() {}

    public static void main(String[] arguments) throws IOException {
        try (SparkSession session = session()) {
            session.sparkContext().setLogLevel("WARN");
            System.out.println(
                    "user interface: " + session.sparkContext().uiWebUrl().getOrElse(() -> "none"));
            boolean stays = List.of(arguments).contains("stay");
            do {
                compare(session);
            } while (stays);
        }
    }

    private static void compare(SparkSession session) {
        Dataset<Row> sales = session.range(0, 2_000_000, 1, 4)
                .selectExpr("(id * 7919) % 1000 as article", "(id * 104729) % 1009 as amount");
        List<Row> onDevice = onDevice(sales).collectAsList();
        List<Row> onCpu = onCpu(sales).collectAsList();
        System.out.println("first articles: " + onDevice.subList(0, 3));
        if (!onDevice.equals(onCpu)) {
            throw new IllegalStateException("the device's sums differ from the CPU's: " + onDevice);
        }
        System.out.println(onDevice.size() + " articles, equal to the CPU's: true");
    }

    private static SparkSession session() {
        SparkSession.Builder builder = SparkSession.builder().appName("sales by article");
        if (System.getProperty("spark.master") == null) {
            builder.master("local[2]")
                    .config("spark.plugins", "io.cistern.spark.CisternPlugin")
                    .config("spark.cistern.driver", "simulated")
                    .config("spark.cistern.simulated.capacity", "64MiB");
        }
        return builder.getOrCreate();
    }

    /// Sums within each partition first; then the sums of each article meet in one partition.
    private static Dataset<Row> onDevice(Dataset<Row> sales) {
        Dataset<Row> parts = GpuColumns.map(sales, KeyedSums.SCHEMA, KeyedSums.atLeast(LEAST));
        return GpuColumns.map(parts.repartitionByRange(4, col("key")), KeyedSums.SCHEMA, KeyedSums.merging())
                .select("key", "sum");
    }

    private static Dataset<Row> onCpu(Dataset<Row> sales) {
        return sales.filter(col("amount").geq(LEAST))
                .groupBy(col("article").as("key"))
                .agg(sum("amount").as("sum"))
                .orderBy("key");
    }
}
