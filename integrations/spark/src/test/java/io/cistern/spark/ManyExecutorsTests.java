package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.spark.ExecutorFigures.DeviceFigures;
import io.cistern.spark.ExecutorFigures.PoolFigures;
import io.cistern.spark.ExecutorFigures.SpillFigures;
import io.cistern.spark.ExecutorFigures.TaskFigures;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.util.Collections;
import org.junit.jupiter.api.Test;

/// What the driver keeps does not grow with time, only with the executors that live.
final class ManyExecutorsTests {
    private static final int EXECUTORS = 1_000;
    private static final int MAX_BYTES_EACH = 4 << 10;

    private final ClusterFigures figures = new ClusterFigures();

    @Test
    void aThousandExecutorsKeepOneSetOfFiguresEach() throws IOException {
        report(1);
        long once = bytes();
        for (int round = 2; round <= 50; round++) {
            report(round);
        }
        assertThat(figures.alive())
                .hasSize(EXECUTORS)
                .allMatch(each -> each.tasks().ended() == 50);
        assertThat(bytes()).isEqualTo(once).isLessThan((long) EXECUTORS * MAX_BYTES_EACH);
        assertThat(figures.total().tasks()).isEqualTo(EXECUTORS * 50L);
    }

    @Test
    void executorsThatAreGoneLeaveTheirSums() {
        for (int generation = 0; generation < 5; generation++) {
            report(1);
            int first = generation * EXECUTORS;
            figures.alive().forEach(each -> figures.removed(each.executorId()));
            assertThat(figures.executorCount()).as("after generation " + first).isZero();
            assertThat(figures.gone()).hasSizeLessThanOrEqualTo(ClusterFigures.MAX_GONE);
        }
        assertThat(figures.total().requestedBytes()).isZero();
    }

    @Test
    void leaksOfOnePlaceAreOne() {
        for (int task = 0; task < 10_000; task++) {
            figures.add(new LeakReport("1", new TaskName(task % 200, 0, task, 0, task), "a place", 1, 10));
        }
        assertThat(figures.leaks()).hasSize(ClusterFigures.MAX_LEAKS);
        assertThat(figures.leaks().getLast().task().stage()).isEqualTo(199);
    }

    @Test
    void figuresOfAnExecutorThatIsGoneAreNotTakenBack() {
        figures.update(executor("7", 1));
        assertThat(figures.removed("7")).isPresent();
        figures.update(executor("7", 2));
        assertThat(figures.executorCount()).isZero();
        assertThat(figures.total().tasks()).isEqualTo(1);
    }

    private void report(int ended) {
        for (int executor = 0; executor < EXECUTORS; executor++) {
            figures.update(executor("" + executor, ended));
        }
    }

    private static ExecutorFigures executor(String id, int ended) {
        TaskName task = new TaskName(1, 0, 1, 0, 1);
        return new ExecutorFigures(
                id,
                "host",
                0,
                new DeviceFigures(0, "GPU", false, "caching", 1, 1, 1, 1, 1),
                new SpillFigures(0, 0, 0, 0, 0, 0, 0, 0),
                new TaskFigures(0, ended, 0, 0, 0, 0, 0, 0, 0),
                Collections.nCopies(ExecutorFigures.MAX_POOLS, new PoolFigures(task, 1, 1, 1)));
    }

    private long bytes() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            for (ExecutorFigures each : figures.alive()) {
                out.writeUnshared((Serializable) each);
            }
        }
        return bytes.size();
    }
}
