package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.buffers.DeviceBuffer;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkException;
import org.apache.spark.api.java.JavaFutureAction;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/// What a task allocates is its own, and gone with it.
final class TaskScopeTests {
    private static final long BYTES = 1 << 20;
    private static final CountDownLatch ALLOCATED = new CountDownLatch(1);
    private static final AtomicBoolean GO = new AtomicBoolean();

    private static LocalSpark spark;

    @BeforeAll
    static void open() {
        spark = new LocalSpark();
    }

    @AfterAll
    static void close() {
        spark.close();
    }

    @Test
    void aTaskAllocatesFromAPoolOfItsOwn() {
        List<String> pools = spark.context()
                .parallelize(List.of(1, 2), 2)
                .map(_ -> {
                    TaskMemory memory = TaskMemory.current();
                    try (DeviceBuffer buffer = DeviceBuffer.allocate(BYTES, memory.stream())) {
                        return buffer.allocator().spec() + " "
                                + memory.pool().statistics(0).requestedBytes();
                    }
                })
                .collect();
        assertThat(pools)
                .hasSize(2)
                .doesNotHaveDuplicates()
                .allSatisfy(pool -> assertThat(pool).contains("task ").endsWith(" " + BYTES));
    }

    @Test
    void whatATaskLeavesIsFreedAndReported() {
        List<Long> ids = spark.context()
                .parallelize(List.of(1), 1)
                .map(_ -> {
                    TaskMemory.current().memory().allocate(BYTES, 0, 0);
                    return TaskMemory.current().name().id();
                })
                .collect();
        assertThat(liveBlocks()).isZero();
        LeakReport leak = Eventually.present(() -> ClusterFigures.ofProcess().leaks().stream()
                .filter(each -> ids.contains(each.task().id()))
                .findFirst());
        assertThat(leak.byteSize()).isEqualTo(BYTES);
        assertThat(leak.site()).contains("TaskScopeTests");
        assertThat(leak.toString()).contains("in stage " + leak.task().stage());
    }

    @Test
    void aTaskThatFailsLeavesNothing() {
        assertThatThrownBy(() -> spark.context()
                        .parallelize(List.of(1), 1)
                        .map(_ -> {
                            TaskMemory.current().spillable(BYTES, 0);
                            DeviceBuffer.allocate(BYTES, TaskMemory.current().stream());
                            throw new IllegalStateException("on purpose");
                        })
                        .collect())
                .isInstanceOf(SparkException.class)
                .hasMessageContaining("on purpose");
        assertThat(liveBlocks()).isZero();
    }

    @Test
    void aTaskThatIsKilledLeavesNothing() throws Exception {
        JavaFutureAction<List<Integer>> job = spark.context()
                .parallelize(List.of(1), 1)
                .map(value -> {
                    DeviceBuffer.allocate(BYTES, TaskMemory.current().stream());
                    ALLOCATED.countDown();
                    while (!org.apache.spark.TaskContext.get().isInterrupted() && !GO.get()) {
                        Thread.onSpinWait();
                    }
                    return value;
                })
                .collectAsync();
        assertThat(ALLOCATED.await(30, TimeUnit.SECONDS)).isTrue();
        assertThat(((Future<?>) job).cancel(false)).isTrue();
        assertThat(Eventually.holds(() -> liveBlocks() == 0)).isTrue();
    }

    @Test
    void outsideTasksThereIsNoTaskMemory() {
        assertThatThrownBy(TaskMemory::current)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("not running a Spark task");
    }

    private static long liveBlocks() {
        return spark.context()
                .parallelize(List.of(1), 1)
                .map(_ -> TaskMemory.current().memory().statistics(0).liveBlocks())
                .first();
    }
}
