package io.cistern.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Map;
import org.apache.spark.SparkEnv;
import org.junit.jupiter.api.Test;

/// Pinned memory counts within the executor's own.
final class HostBudgetTests {
    @Test
    void itIsTakenOutOfSparksOffHeapMemory() {
        Map<String, String> offHeap = Map.of(
                "spark.memory.offHeap.enabled", "true",
                "spark.memory.offHeap.size", "64m",
                "spark.cistern.pinned", "24m");
        try (LocalSpark spark = new LocalSpark(offHeap)) {
            assertThat(spark.context().parallelize(List.of(1)).count()).isEqualTo(1);
            assertThat(SparkEnv.get().memoryManager().storageMemoryUsed()).isGreaterThanOrEqualTo(24 << 20);
        }
    }

    @Test
    void moreThanTheExecutorHasIsRefused() {
        assertThatThrownBy(() -> new LocalSpark(Map.of("spark.cistern.pinned", "1g")))
                .hasStackTraceContaining("spark.cistern.pinned is 1073741824 bytes")
                .hasStackTraceContaining("spark.executor.memoryOverhead has only 402653184");
    }
}
