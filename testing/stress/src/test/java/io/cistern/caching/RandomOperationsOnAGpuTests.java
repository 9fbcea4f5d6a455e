package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Each allocator keeps its promises under [RandomOperations].
class RandomOperationsOnAGpuTests {
    @ParameterizedTest
    @ValueSource(
            strings = {
                "direct",
                "async",
                "async:release_threshold=adaptive",
                "async:small_pool=1MiB",
                "caching",
                "caching:source=linear",
                "caching:source=driver_pool",
                "caching:reuse=never",
                "vmm",
                "nccl",
                "symmetric"
            })
    void nothingOverlapsGoesWrongOrIsLost(String spec) {
        assertThat(new RandomOperations(spec, 1).run(20_000, 100)).isNotNegative();
    }
}
