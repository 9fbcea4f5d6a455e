package io.cistern.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.cistern.cli.common.InputException;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.Work;
import io.cistern.cli.trace.BundledTraces;
import java.util.OptionalLong;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The simulated driver's pool reserves for recorded programs what an H200's pool reserves for them
/// (docs/measurements/raw/driver-pool-peaks.txt.gz): nothing done with the blocks, and each filled.
final class DriverPoolOnTracesTests {
    private static final long PAGE_BYTES = 32L << 20;
    private static final double TOLERANCE = 0.05;

    @ParameterizedTest
    @CsvSource({
        "gpt2_train, NONE, 557",
        "resnet_train, NONE, 341",
        "llama_generate, NONE, 26",
        "gnn_sample, NONE, 354",
        "vit_streams, NONE, 56",
        "gpt2_train, MEMSET, 592",
        "resnet_train, MEMSET, 345",
        "llama_generate, MEMSET, 26",
        "gnn_sample, MEMSET, 419",
        "vit_streams, MEMSET, 72"
    })
    void reservesWhatAnH200Reserves(String trace, Work work, long pages) throws InputException {
        try (ReplayDevice gpu = new ReplayDevice.Simulated(OptionalLong.empty())) {
            ReplaySession session = new ReplaySession(
                    BundledTraces.read(trace),
                    "async",
                    Routing.Plan.ONE_ALLOCATOR,
                    gpu,
                    Plugins.catalog(),
                    2,
                    () -> {},
                    (_, failure) -> {
                        throw failure;
                    },
                    null,
                    null);
            double reserved = session.observed(work).reservedPeakBytes().orElseThrow();
            assertThat(reserved / PAGE_BYTES / pages).isCloseTo(1, within(TOLERANCE));
        }
    }
}
