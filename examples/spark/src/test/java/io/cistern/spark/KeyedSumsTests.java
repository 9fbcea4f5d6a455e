package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.spark.ExecutorFigures.TaskFigures;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;

/// A job on a device has the results of the same on the CPU, whatever room it has.
final class KeyedSumsTests {
    private static final int BATCH_ROWS = 16 << 10;

    @Test
    void sumsAreThoseOfTheCpu() {
        try (LocalSpark spark = new LocalSpark()) {
            Dataset<Row> sales = Sales.of(spark.session(), 50_000, 700, 3);
            List<Row> sums = Sales.sumsOnDevice(sales, 2, BATCH_ROWS).collectAsList();
            assertThat(sums).hasSize(700).isEqualTo(Sales.sumsOnCpu(sales).collectAsList());
            assertThat(Sales.sumsOnDevice(sales.filter("key = 1 and key = 2"), 2, BATCH_ROWS)
                            .collectAsList())
                    .isEmpty();
        }
    }

    @Test
    void aJobLargerThanTheDeviceSpills() {
        Map<String, String> small = Map.of("spark.cistern.simulated.capacity", "8MiB", "spark.cistern.pinned", "2m");
        try (LocalSpark spark = new LocalSpark(small)) {
            Dataset<Row> sales = Sales.of(spark.session(), 600_000, 1_000, 2);
            List<Row> sums = Sales.sumsOnDevice(sales, 2, 64 << 10).collectAsList();
            assertThat(sums).isEqualTo(Sales.sumsOnCpu(sales).collectAsList());
            ExecutorFigures figures = Eventually.present(() -> ClusterFigures.ofProcess().alive().stream()
                    .filter(each -> each.tasks().running() == 0 && each.spill().spilledBytes() > 0)
                    .findFirst());
            assertThat(figures.spill().writtenBytes()).isPositive();
            assertThat(figures.device().requestedBytes()).isZero();
            assertThat(figures.spill().hostBytes() + figures.spill().fileBytes())
                    .isZero();
            assertThat(figures.tasks()).extracting(TaskFigures::leakedBytes).isEqualTo(0L);
        }
    }

    @Test
    void aTaskKeepsToItsShareOfTheDevice() {
        try (LocalSpark spark = new LocalSpark(Map.of("spark.cistern.task.limit", "3m"))) {
            Dataset<Row> sales = Sales.of(spark.session(), 200_000, 1_000, 2);
            List<Row> sums = Sales.sumsOnDevice(sales, 2, 32 << 10).collectAsList();
            assertThat(sums).isEqualTo(Sales.sumsOnCpu(sales).collectAsList());
        }
    }
}
