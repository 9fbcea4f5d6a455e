package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// What a task's own limit refuses is split; what ends a device's context ends the executor.
final class LimitRetryTests {
    private static final List<Integer> INPUT = IntStream.range(0, 10).boxed().toList();

    @Test
    void aPartThatIsRefusedIsSplitInOrder() {
        List<List<Integer>> parts = LimitRetry.<List<Integer>, List<Integer>, RuntimeException>withRetry(
                INPUT, LimitRetryTests::halves, part -> atMost(2, part));
        assertThat(parts).allMatch(part -> part.size() <= 2);
        assertThat(parts.stream().flatMap(List::stream).toList()).isEqualTo(INPUT);
    }

    @Test
    void aPartThatCannotBeSplitIsRefusedForGood() {
        assertThatThrownBy(() -> LimitRetry.<List<Integer>, List<Integer>, RuntimeException>withRetry(
                        INPUT, LimitRetryTests::halves, part -> atMost(0, part)))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("the task's limit");
    }

    @Test
    void onlyADeadContextEndsTheExecutor() {
        assertThat(DeadDevice.isDead(failed(CudaResult.ILLEGAL_ADDRESS))).isTrue();
        assertThat(DeadDevice.isDead(new IllegalStateException(failed(CudaResult.LAUNCH_FAILED))))
                .isTrue();
        assertThat(DeadDevice.isDead(failed(CudaResult.OUT_OF_MEMORY))).isFalse();
        assertThat(DeadDevice.isDead(new IllegalStateException("no cause"))).isFalse();
    }

    private static CudaException failed(CudaResult result) {
        return new CudaException(DriverCall.LAUNCH_KERNEL, result.code(), "");
    }

    private static List<Integer> atMost(int size, List<Integer> part) {
        if (part.size() > size) {
            throw new DeviceOutOfMemoryException(part.size(), 0, "the task's limit");
        }
        return part;
    }

    private static List<List<Integer>> halves(List<Integer> part) {
        int half = part.size() / 2;
        return half == 0 ? List.of() : List.of(part.subList(0, half), part.subList(half, part.size()));
    }
}
