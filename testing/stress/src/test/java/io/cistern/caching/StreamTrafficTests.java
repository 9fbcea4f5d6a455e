package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Each allocator keeps its promises under [StreamTraffic].
class StreamTrafficTests {
    private static final int SEEDS = 10;

    @ParameterizedTest
    @ValueSource(
            strings = {
                "direct",
                "async",
                "caching",
                "caching:fit=tight",
                "caching:source=linear",
                "caching:reuse=wait",
                "caching:reuse=never",
                "vmm",
                "nccl",
                "symmetric"
            })
    void blocksPassedBetweenThreadsOutliveTheirStreams(String spec) throws Exception {
        for (long seed = 0; seed < SEEDS; seed++) {
            assertThat(new StreamTraffic(spec, seed).run()).as("seed %d", seed).isEmpty();
        }
    }
}
