package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// A job whose devices are too small for it: its results are those of the CPU, even if an executor is killed, and
/// nothing stays allocated.
@Timeout(value = 180)
final class ClusterJobTests {
    private static final long ROWS = 300_000;
    private static final int BATCH_ROWS = 64 << 10;

    @TempDir
    private static Path home;

    private static TwoExecutors cluster;
    private static List<Row> expected;

    @BeforeAll
    static void start() throws IOException {
        cluster = new TwoExecutors(home);
        expected = Sales.sumsOnCpu(sales()).collectAsList();
    }

    @AfterAll
    static void stop() {
        cluster.close();
    }

    private static Dataset<Row> sales() {
        return Sales.of(cluster.session(), ROWS, 500, 4);
    }

    private static List<Row> sums() {
        return Sales.sumsOnDevice(sales(), 4, BATCH_ROWS).collectAsList();
    }

    @Test
    void aJobLargerThanTheDevicesHasTheResultsOfTheCpu() {
        assertThat(sums()).isEqualTo(expected);
        TwoExecutors.assertNothingAllocated();
        assertThat(ClusterFigures.ofProcess().total().spilledBytes()).isPositive(); // which serves it without a split
    }

    @Test
    void anExecutorIsKilledInTheMiddleOfTheJob() throws Exception {
        String victim = TwoExecutors.alive().getFirst().executorId();
        CompletableFuture<List<Row>> job = CompletableFuture.supplyAsync(ClusterJobTests::sums);
        assertThat(Eventually.holds(() -> TwoExecutors.alive().stream()
                        .anyMatch(each -> each.executorId().equals(victim)
                                && each.device().requestedBytes() > 0)))
                .isTrue();
        cluster.kill(victim);
        assertThat(job.get(120, TimeUnit.SECONDS)).isEqualTo(expected);
        TwoExecutors.assertNothingAllocated();
        assertThat(ClusterFigures.ofProcess().gone())
                .extracting(ExecutorFigures::executorId)
                .contains(victim);
    }
}
