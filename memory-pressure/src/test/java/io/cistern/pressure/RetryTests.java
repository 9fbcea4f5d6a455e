package io.cistern.pressure;

import static io.cistern.pressure.Retry.withRetry;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// What people write around work that may have to begin again.
@Timeout(30)
final class RetryTests {
    private final SmallGpu gpu = new SmallGpu();
    private final Task task = gpu.arbiter.task(1, 0);

    @AfterEach
    void close() {
        gpu.close();
    }

    private static List<List<Integer>> halves(List<Integer> input) {
        int middle = input.size() / 2;
        return middle == 0 ? List.of() : List.of(input.subList(0, middle), input.subList(middle, input.size()));
    }

    /// Needs 10 bytes for each number.
    private int sum(List<Integer> part) {
        long scratch = gpu.allocate(part.size() * 10L);
        try {
            return part.stream().mapToInt(Integer::intValue).sum();
        } finally {
            gpu.free(scratch);
        }
    }

    @Test
    void whatFitsRunsOnce() {
        assertThat(task.<List<Integer>, RuntimeException>call(
                        () -> withRetry(List.of(1, 2, 3), RetryTests::halves, this::sum)))
                .containsExactly(6);
    }

    @Test
    void whatDoesNotFitIsDoneInPartsInOrder() {
        List<Integer> numbers = new ArrayList<>();
        for (int i = 0; i < 32; i++) {
            numbers.add(i);
        }
        List<Integer> sums = task.call(() -> withRetry(numbers, RetryTests::halves, this::sum));
        assertThat(sums).containsExactly(28, 92, 156, 220);
        assertThat(task.statistics().splits()).isEqualTo(3); // 32 → 16 + 16 → 8 + 8 each
    }

    @Test
    void whatWasToldToRollBackRunsAgain() {
        task.forceRetries(3, 0);
        List<Integer> seen = new ArrayList<>();
        int result = task.call(() -> withRetry(() -> {
            seen.add(seen.size());
            gpu.free(gpu.allocate(10));
            return 7;
        }));
        assertThat(result).isEqualTo(7);
        assertThat(seen).hasSize(4);
        assertThat(task.statistics().retries()).isEqualTo(3);
    }

    @Test
    void whatCannotBeSplitFurtherSaysWhatWasTried() {
        assertThatThrownBy(() -> task.run(() -> withRetry(List.of(1, 2, 3), RetryTests::halves, part -> {
                    gpu.allocate(CAPACITY_AND_MORE);
                    return part;
                })))
                .isInstanceOfSatisfying(DeviceOutOfMemoryException.class, failure -> {
                    assertThat(failure.byteSize()).isEqualTo(CAPACITY_AND_MORE);
                    assertThat(failure.detail())
                            .contains("can't split its input further")
                            .contains("split 1 times");
                    assertThat(failure).hasCauseInstanceOf(SplitAndRetryOom.class);
                });
    }

    private static final long CAPACITY_AND_MORE = SmallGpu.CAPACITY + 1;

    private final List<String> closed = new ArrayList<>();

    private final class Part implements AutoCloseable {
        private final int from;
        private final int to;
        private boolean failsToClose;

        Part(int from, int to) {
            this.from = from;
            this.to = to;
        }

        List<Part> halves() {
            int middle = (from + to) / 2;
            return middle == from ? List.of() : List.of(new Part(from, middle), new Part(middle, to));
        }

        @Override
        public void close() {
            closed.add(from + "-" + to);
            if (failsToClose) {
                throw new IllegalStateException("stays open");
            }
        }
    }

    @Test
    void partsAreClosedAndTheInputIsNot() {
        task.forceSplits(1, 0);
        List<Integer> sizes = task.call(() -> withRetry(new Part(0, 4), Part::halves, part -> {
            gpu.free(gpu.allocate(10));
            return part.to - part.from;
        }));
        assertThat(sizes).containsExactly(2, 2);
        assertThat(closed).containsExactly("0-2", "2-4");
    }

    @Test
    void whenItFailsForGoodResultsAndPartsAreClosed() {
        task.forceSplits(1, 0);
        assertThatThrownBy(() -> task.run(() -> withRetry(new Part(0, 4), Part::halves, part -> {
                    gpu.free(gpu.allocate(10));
                    if (part.from == 2) {
                        throw new IllegalArgumentException("bad");
                    }
                    return new Part(10, 11);
                })))
                .hasMessage("bad");
        assertThat(closed).containsExactly("0-2", "2-4", "10-11");
    }

    @Test
    void aCloseThatFailsHidesNoFailureAndNoOtherClose() {
        task.forceSplits(1, 0);
        assertThatThrownBy(() -> task.run(() -> withRetry(new Part(0, 4), Part::halves, part -> {
                    gpu.free(gpu.allocate(10));
                    if (part.from == 2) {
                        part.failsToClose = true;
                        throw new IllegalArgumentException("bad");
                    }
                    return new Part(10, 11);
                })))
                .hasMessage("bad")
                .satisfies(bad -> assertThat(bad.getSuppressed())
                        .extracting(Throwable::getMessage)
                        .contains("stays open"));
        assertThat(closed).containsExactly("0-2", "2-4", "10-11");
    }

    @Test
    void outsideTasksTheBodyRunsOnce() {
        int[] runs = new int[1];
        assertThatThrownBy(() -> withRetry(() -> {
                    runs[0]++;
                    return gpu.allocate(CAPACITY_AND_MORE);
                }))
                .isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(runs[0]).isOne();
    }
}
