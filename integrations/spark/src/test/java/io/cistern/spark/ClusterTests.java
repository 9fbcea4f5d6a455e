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
import java.util.stream.IntStream;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkException;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Two workers, an executor on each with a device of its own: whatever is killed, nothing stays allocated.
@Timeout(value = 180)
final class ClusterTests {
    @TempDir
    private static Path home;

    private static TwoExecutors cluster;

    @BeforeAll
    static void start() throws IOException {
        cluster = new TwoExecutors(home);
    }

    @AfterAll
    static void stop() {
        cluster.close();
    }

    @Test
    void eachExecutorHasTheDeviceOfItsWorker() {
        assertThat(TwoExecutors.alive())
                .extracting(each -> each.device().ordinal())
                .containsExactlyInAnyOrder(0, 1);
        assertThat(TwoExecutors.alive())
                .allSatisfy(each -> assertThat(each.device().simulated()).isTrue());
        TwoExecutors.assertNothingAllocated();
    }

    @Test
    void aTaskThatSpeculationKillsLeavesNothing() throws IOException {
        String marks = Files.createDirectory(home.resolve("marks")).toString();
        List<String> executors = cluster.context()
                .parallelize(IntStream.range(0, 4).boxed().toList(), 4)
                .map(value -> holdUnlessSecond(value, marks))
                .collect();
        assertThat(executors).hasSize(4);
        assertThat(Path.of(marks, "first")).as("the first attempt began").exists();
        TwoExecutors.assertNothingAllocated();
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
        TwoExecutors.assertNothingAllocated();
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
        TwoExecutors.assertNothingAllocated();
    }

    /// What a rank gives, by its number.
    private interface Given extends Serializable {
        long of(int rank);
    }

    private static List<Long> reduced(Given given) {
        JavaRDD<Integer> two = cluster.context().parallelize(List.of(0, 1), 2);
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
