package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.OptionalLong;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The simulated driver's pool reserves for recorded programs what an H200's pool reserves for them
/// (docs/measurements/2026-11-24-h200-pools), nothing done with the blocks.
final class DriverPoolOnTracesTests {
    private static final long PAGE_BYTES = 32L << 20;
    private static final double TOLERANCE = 0.05;

    @ParameterizedTest
    @CsvSource({"gpt2_train, 557", "resnet_train, 341", "llama_generate, 26", "gnn_sample, 354", "vit_streams, 56"})
    void reservesWhatAnH200Reserves(String trace, long pages) throws TraceException {
        try (ReplayDevice gpu = new ReplayDevice.Simulated(OptionalLong.empty())) {
            ReplaySession session = new ReplaySession(
                    BundledTraces.read(trace),
                    "async",
                    Routing.Plan.ONE_ALLOCATOR,
                    gpu,
                    Plugins.catalog(),
                    2,
                    () -> {},
                    failure -> {
                        throw failure;
                    },
                    null);
            double reserved = session.observed(Work.NONE).reservedPeakBytes().orElseThrow();
            assertThat(reserved / PAGE_BYTES / pages).isCloseTo(1, within(TOLERANCE));
        }
    }
}
