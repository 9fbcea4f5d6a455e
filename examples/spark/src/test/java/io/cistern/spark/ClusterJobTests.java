package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.examples.spark.queries.Expected;
import io.cistern.examples.spark.queries.Query;
import io.cistern.examples.spark.queries.QueryJob;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Jobs on devices that are too small for them, and the queries: their results are those of the CPU or of DuckDB, even
/// if an executor is killed, and nothing stays allocated.
@Timeout(value = 180)
final class ClusterJobTests {
    private static final long ROWS = 300_000;
    private static final int BATCH_ROWS = 64 << 10;
    private static final double QUERIES_SCALE = 0.01;

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

    private static Map<Query, List<String>> queries(Query... queries) {
        return Arrays.stream(queries).collect(Collectors.toMap(Function.identity(), query -> rows(query, 4)));
    }

    private static List<String> rows(Query query, int tasks) {
        return QueryJob.run(cluster.session(), query, QUERIES_SCALE, tasks);
    }

    @Test
    void queriesHaveTheResultsOfDuckDb() throws IOException {
        assertThat(queries(Query.values())).isEqualTo(Expected.read(QUERIES_SCALE));
        TwoExecutors.assertNothingAllocated();
    }

    @Test
    void aSliceLargerThanTheDeviceIsSplit() throws IOException {
        long before = ClusterFigures.ofProcess().total().splits();
        assertThat(rows(Query.Q18, 1)).isEqualTo(Expected.read(QUERIES_SCALE).get(Query.Q18));
        TwoExecutors.assertNothingAllocated();
        assertThat(Eventually.holds(() -> ClusterFigures.ofProcess().total().splits() > before))
                .as("executors tell figures now and then")
                .isTrue();
    }

    @Test
    void aJobLargerThanTheDevicesHasTheResultsOfTheCpu() {
        assertThat(sums()).isEqualTo(expected);
        TwoExecutors.assertNothingAllocated();
        assertThat(Eventually.holds(() -> ClusterFigures.ofProcess().total().spilledBytes() > 0))
                .as("served by spilling, without a split")
                .isTrue();
    }

    @Test
    void anExecutorIsKilledInTheMiddleOfTheJob() throws Exception {
        assertThat(withAnExecutorKilled(ClusterJobTests::sums)).isEqualTo(expected);
    }

    @Test
    void anExecutorIsKilledInTheMiddleOfTheQueries() throws Exception {
        Map<Query, List<String>> rows = withAnExecutorKilled(() -> queries(Query.Q1, Query.Q10, Query.Q16));
        assertThat(Expected.read(QUERIES_SCALE)).containsAllEntriesOf(rows);
    }

    private static <R> R withAnExecutorKilled(Supplier<R> work) throws Exception {
        String victim = TwoExecutors.alive().getFirst().executorId();
        CompletableFuture<R> job = CompletableFuture.supplyAsync(work);
        assertThat(Eventually.holds(() -> TwoExecutors.alive().stream()
                        .anyMatch(each -> each.executorId().equals(victim)
                                && each.device().requestedBytes() > 0)))
                .isTrue();
        cluster.kill(victim);
        R result = job.get(120, TimeUnit.SECONDS);
        TwoExecutors.assertNothingAllocated();
        assertThat(ClusterFigures.ofProcess().gone())
                .extracting(ExecutorFigures::executorId)
                .contains(victim);
        return result;
    }
}
