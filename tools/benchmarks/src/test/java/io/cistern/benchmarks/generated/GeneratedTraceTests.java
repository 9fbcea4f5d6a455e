package io.cistern.benchmarks.generated;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.replay.Replay;
import io.cistern.cli.replay.ReplaySession;
import io.cistern.cli.trace.Trace;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// Traces that are generated to fragment memory, and what `caching` makes of them on a device that they nearly fill.
final class GeneratedTraceTests {
    private static final long CAPACITY_BYTES = 4L << 30;

    @ParameterizedTest
    @EnumSource
    void aSeedGivesTheSameTraceAgainAndAnotherOneAnother(GeneratedTrace generated) {
        Trace one = generated.build(1, CAPACITY_BYTES);

        assertThat(generated.build(1, CAPACITY_BYTES).byteSizes()).isEqualTo(one.byteSizes());
        assertThat(generated.build(2, CAPACITY_BYTES).byteSizes()).isNotEqualTo(one.byteSizes());
    }

    @ParameterizedTest
    @EnumSource
    void noneWantsMoreThanTheDeviceHas(GeneratedTrace generated) {
        assertThat(generated.build(1, CAPACITY_BYTES).requestedPeakBytes())
                .isBetween(CAPACITY_BYTES / 32, CAPACITY_BYTES / 100 * 95 + 100);
    }

    @Test
    void theSawtoothReaches95PercentOfTheDevice() {
        assertThat(GeneratedTrace.SAWTOOTH.build(1, CAPACITY_BYTES).requestedPeakBytes())
                .isGreaterThan((long) (0.949 * CAPACITY_BYTES));
    }

    @Test
    void aThousandStreamsComeAndGoAndFewAreThereAtOnce() {
        Trace trace = GeneratedTrace.SHORT_STREAMS.build(1, CAPACITY_BYTES);
        int ends = 0;
        for (byte op : trace.ops()) {
            ends += op == Trace.END ? 1 : 0;
        }

        assertThat(ends).isEqualTo(1_000);
        assertThat(trace.streamCount()).isBetween(2, 3);
    }

    /// Three times over, on a device that the sawtooth fills to 95 percent.
    @ParameterizedTest
    @EnumSource
    void cachingServesItAgainAndAgainWithBoundedReservedMemory(GeneratedTrace generated) {
        Trace trace = generated.build(1, CAPACITY_BYTES);
        ReplaySession.Outcome outcome = GeneratedPrograms.replay(
                trace, "caching", 3, new ReplayDevice.Simulated(OptionalLong.of(CAPACITY_BYTES)));

        assertThat(outcome.passes()).extracting(Replay.Pass::failures).containsExactly(0L, 0L, 0L);
        assertThat(outcome.unreturnedBytes()).isZero();
        assertThat(GeneratedPrograms.ratio(outcome)).isBetween(1.0, 1.37);
    }

    /// Some of these never come to rest: only what they reserve is asked for.
    @ParameterizedTest
    @CsvSource({
        "LONG_LIVED,    1.31, 1.07",
        "DRIFTING,      1.09, 1.03",
        "SHORT_STREAMS, 1.04, 1.035",
        "SAWTOOTH,      1.02, 1.01",
        "PHASES,        1.01, 1.01",
    })
    void whatFragmentsMemoryOnPurposeReservesLittleMore(GeneratedTrace generated, double usual, double tight) {
        Trace trace = generated.build(GeneratedTrace.USUAL_SEED, GeneratedTrace.USUAL_CAPACITY_BYTES);

        assertThat(ratio(trace, "caching")).isLessThanOrEqualTo(usual);
        assertThat(ratio(trace, "caching:fit=tight")).isLessThanOrEqualTo(tight);
    }

    private static double ratio(Trace trace, String spec) {
        return GeneratedPrograms.ratio(
                GeneratedPrograms.replay(trace, spec, 1, new ReplayDevice.Simulated(OptionalLong.empty())));
    }
}
