package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.CudaStream;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.nccl.DataType;
import io.cistern.nccl.ReductionOp;
import io.cistern.spark.barrier.BarrierStage;
import java.io.IOException;
import java.io.Serializable;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkException;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Two workers, an executor on each with a device of its own that is too small for the job: whatever is killed, the
/// results are right and nothing stays allocated.
@Timeout(value = 180)
final class ClusterTests {
    private static final long ROWS = 300_000;
    private static final int BATCH_ROWS = 64 << 10;

    @TempDir
    private static Path home;

    private static SparkCluster cluster;
    private static SparkSession session;
    private static List<Row> expected;

    @BeforeAll
    static void start() throws IOException {
        cluster = SparkCluster.start(home, 2);
        session = SparkSession.builder()
                .master(cluster.master())
                .appName("cluster")
                .config("spark.driver.host", "127.0.0.1")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.ui.enabled", "false")
                .config("spark.plugins", CisternPlugin.class.getName())
                .config("spark.executor.memory", "512m")
                .config("spark.executor.cores", "2")
                .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
                .config("spark.executor.resource.gpu.amount", "1")
                .config("spark.task.resource.gpu.amount", "0.5")
                .config("spark.cistern.task.limit", "none")
                .config("spark.cistern.driver", "simulated")
                .config("spark.cistern.simulated.capacity", "8MiB")
                .config("spark.cistern.pinned", "4m")
                .config("spark.cistern.figures.interval", "100ms")
                .config("spark.sql.shuffle.partitions", "4")
                .config("spark.speculation", "true")
                .config("spark.speculation.interval", "100ms")
                .config("spark.speculation.multiplier", "3")
                .config("spark.speculation.quantile", "0.5")
                .config("spark.speculation.minTaskRuntime", "3s")
                .getOrCreate();
        assertThat(Eventually.holds(() -> alive().size() == 2)).isTrue();
        expected = Sales.sumsOnCpu(sales()).collectAsList();
    }

    @AfterAll
    static void stop() {
        session.stop();
        cluster.close();
    }

    private static Dataset<Row> sales() {
        return Sales.of(session, ROWS, 500, 4);
    }

    private static List<ExecutorFigures> alive() {
        return ClusterFigures.ofProcess().alive();
    }

    private static JavaSparkContext context() {
        return JavaSparkContext.fromSparkContext(session.sparkContext());
    }

    private static List<Row> sums() {
        return Sales.sumsOnDevice(sales(), 4, BATCH_ROWS).collectAsList();
    }

    /// Waits until each executor says that its tasks have ended and its device is empty.
    private static void assertNothingAllocated() {
        assertThat(Eventually.holds(() -> alive().size() == 2
                        && alive().stream()
                                .allMatch(each -> each.tasks().running() == 0
                                        && each.device().requestedBytes() == 0
                                        && each.spill().hostBytes()
                                                        + each.spill().fileBytes()
                                                == 0)))
                .isTrue();
    }

    @Test
    void eachExecutorHasTheDeviceOfItsWorker() {
        assertThat(alive()).extracting(each -> each.device().ordinal()).containsExactlyInAnyOrder(0, 1);
        assertThat(alive())
                .allSatisfy(each -> assertThat(each.device().simulated()).isTrue());
        assertNothingAllocated();
    }

    @Test
    void aJobLargerThanTheDevicesHasTheResultsOfTheCpu() {
        assertThat(sums()).isEqualTo(expected);
        assertNothingAllocated();
        assertThat(ClusterFigures.ofProcess().total().spilledBytes()).isPositive(); // which serves it without a split
    }

    @Test
    void anExecutorIsKilledInTheMiddleOfTheJob() throws Exception {
        String victim = alive().getFirst().executorId();
        CompletableFuture<List<Row>> job = CompletableFuture.supplyAsync(ClusterTests::sums);
        assertThat(Eventually.holds(() -> alive().stream()
                        .anyMatch(each -> each.executorId().equals(victim)
                                && each.device().requestedBytes() > 0)))
                .isTrue();
        cluster.kill(victim);
        assertThat(job.get(120, TimeUnit.SECONDS)).isEqualTo(expected);
        assertNothingAllocated();
        assertThat(ClusterFigures.ofProcess().gone())
                .extracting(ExecutorFigures::executorId)
                .contains(victim);
    }

    @Test
    void aTaskThatSpeculationKillsLeavesNothing() throws IOException {
        String marks = Files.createDirectory(home.resolve("marks")).toString();
        List<String> executors = context()
                .parallelize(IntStream.range(0, 4).boxed().toList(), 4)
                .map(value -> holdUnlessSecond(value, marks))
                .collect();
        assertThat(executors).hasSize(4);
        assertThat(Path.of(marks, "first")).as("the first attempt began").exists();
        assertNothingAllocated();
    }

    /// The first attempt at partition 0 holds memory and never ends by itself.
    private static String holdUnlessSecond(int value, String marks) throws IOException, InterruptedException {
        TaskMemory memory = TaskMemory.current();
        memory.memory().allocate(1 << 20, memory.device(), 0);
        if (value == 0 && TaskContext.get().attemptNumber() == 0) {
            Files.createFile(Path.of(marks, "first"));
            while (true) {
                Thread.sleep(100);
            }
        }
        return SparkEnv.get().executorId();
    }

    @Test
    void tasksOfABarrierStageReduceTogether() {
        assertThat(reduced(rank -> 4 + 2L * rank)).containsExactly(10L, 10L);
        assertNothingAllocated();
    }

    @Test
    void aBrokenMemberEndsTheStageAndNotTheApplication() {
        assertThatThrownBy(() -> reduced(rank -> {
                    if (rank == 1) {
                        throw new IllegalStateException("on purpose");
                    }
                    return 1;
                }))
                .isInstanceOf(SparkException.class)
                .hasMessageContaining("on purpose");
        assertThat(reduced(rank -> 4 + 2L * rank)).containsExactly(10L, 10L);
        assertNothingAllocated();
    }

    /// What a rank gives, by its number.
    private interface Given extends Serializable {
        long of(int rank);
    }

    private static List<Long> reduced(Given given) {
        JavaRDD<Integer> two = context().parallelize(List.of(0, 1), 2);
        return BarrierStage.<Integer, Long>mapPartitions(two, (_, ranks) -> {
                    CudaStream stream = TaskMemory.current().stream();
                    try (DeviceBuffer buffer = DeviceBuffer.allocate(Long.BYTES, stream)) {
                        buffer.elements(ValueLayout.JAVA_LONG).set(0, given.of(ranks.rank()));
                        ranks.allReduce(buffer, DataType.INT64, ReductionOp.SUM);
                        return List.of(buffer.elements(ValueLayout.JAVA_LONG).getLong(0))
                                .iterator();
                    }
                })
                .collect();
    }
}
