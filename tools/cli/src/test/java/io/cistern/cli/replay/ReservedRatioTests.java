package io.cistern.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.common.InputException;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.Work;
import io.cistern.cli.trace.BundledTraces;
import io.cistern.cli.trace.Trace;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalLong;
import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// How much `caching` reserves for what real programs ask of it, and that it comes to rest: pages move in the
/// first passes, and then the driver is hardly asked any more, or only about the order of streams. Bounds are
/// a little above what was measured.
final class ReservedRatioTests {
    private static final int PASSES = 6;
    /// After which programs have come to rest.
    private static final int FIRST_PASSES = 2;
    /// The only one with several streams: each call orders one after another.
    private static final String STREAMS = "vit_streams";

    /// Calls a pass from then on, for each wait of a stream for another.
    private static final int MAX_CALLS_OF_STREAMS = 100;

    @Test
    void recordedProgramsReserveWhatTheyNeedAndComeToRest() throws InputException {
        Map<String, ReplaySession.Outcome> outcomes = recorded("caching");
        assertRatios(outcomes, 1.03, 1.08);
        outcomes.forEach((name, outcome) -> {
            for (Replay.Pass pass : outcome.passes().subList(FIRST_PASSES, PASSES)) {
                assertThat(pass.driverCalls())
                        .as(name)
                        .isLessThanOrEqualTo(name.equals(STREAMS) ? MAX_CALLS_OF_STREAMS : 0);
            }
        });
    }

    @Test
    void aTightFitReservesHardlyMoreThanIsNeeded() throws InputException {
        assertRatios(recorded("caching:fit=tight"), 1.015, 1.05);
    }

    @ParameterizedTest
    @CsvSource({"caching", "caching:fit=tight"})
    void streamsComeToRestToo(String spec) throws InputException {
        ReplaySession.Outcome outcome = replay(BundledTraces.read(STREAMS), spec, PASSES);
        assertThat(outcome.passes().getLast().driverCalls()).isLessThanOrEqualTo(300);
    }

    @Test
    void streamsComeToRestOnADeviceThatIsNearlyFull() throws InputException {
        Trace trace = BundledTraces.read(STREAMS);
        long byteSize = trace.origins().largestPeakBytes() / 10 * 11;
        ReplaySession.Outcome outcome = replay(trace, "caching", PASSES, OptionalLong.of(byteSize));
        assertThat(outcome.passes().getLast().driverCalls()).isLessThanOrEqualTo(300);
    }

    private static Map<String, ReplaySession.Outcome> recorded(String spec) throws InputException {
        Map<String, ReplaySession.Outcome> outcomes = new LinkedHashMap<>();
        for (String name : BundledTraces.NAMES) {
            outcomes.put(name, replay(BundledTraces.read(name), spec, PASSES));
        }
        return outcomes;
    }

    private static void assertRatios(Map<String, ReplaySession.Outcome> outcomes, double mostMean, double most) {
        double logarithms = 0;
        for (Map.Entry<String, ReplaySession.Outcome> each : outcomes.entrySet()) {
            double ratio = ratio(each.getValue());
            assertThat(ratio).as(each.getKey()).isBetween(1.0, most);
            logarithms += Math.log(ratio);
        }
        assertThat(outcomes).hasSize(5);
        assertThat(Math.exp(logarithms / outcomes.size())).as("geometric mean").isLessThanOrEqualTo(mostMean);
    }

    /// PyTorch 2.11 replayed the same traces on an H200, ten times each: `docs/measurements/raw/replays.jsonl.gz`.
    @ParameterizedTest
    @CsvSource(textBlock = """
            gnn_sample,     pytorch-native,     20709376000
            gnn_sample,     pytorch-expandable, 12197036032
            gpt2_train,     pytorch-native,     20661141504
            gpt2_train,     pytorch-expandable, 19178455040
            llama_generate, pytorch-native,      1394606080
            llama_generate, pytorch-expandable,   908066816
            resnet_train,   pytorch-native,     13434355712
            resnet_train,   pytorch-expandable, 11255414784
            vit_streams,    pytorch-native,      3051356160
            vit_streams,    pytorch-expandable,  2720006144
            """)
    void theModelsOfPyTorchReserveWhatItDid(String trace, String model, long reservedBytes) throws Exception {
        assertThat(replay(BundledTraces.read(trace), model, 10)
                        .reservedPeakBytes()
                        .orElseThrow())
                .isCloseTo(reservedBytes, Percentage.withPercentage(1));
    }

    private static double ratio(ReplaySession.Outcome outcome) {
        return (double) outcome.reservedPeakBytes().orElseThrow()
                / outcome.metered().requestedPeakBytes();
    }

    private static ReplaySession.Outcome replay(Trace trace, String spec, int passes) {
        return replay(trace, spec, passes, OptionalLong.empty());
    }

    private static ReplaySession.Outcome replay(Trace trace, String spec, int passes, OptionalLong capacityBytes) {
        try (ReplayDevice gpu = new ReplayDevice.Simulated(capacityBytes)) {
            return new ReplaySession(
                            trace,
                            spec,
                            Routing.Plan.ONE_ALLOCATOR,
                            gpu,
                            Plugins.catalog(),
                            passes,
                            () -> {},
                            ReservedRatioTests::unexpected,
                            null,
                            null)
                    .observed(Work.NONE);
        }
    }

    private static boolean unexpected(int row, DeviceOutOfMemoryException failure) {
        throw failure;
    }
}
