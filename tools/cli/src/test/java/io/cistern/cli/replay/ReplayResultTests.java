package io.cistern.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.AllocatorStatistics;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.ResultWriter;
import io.cistern.cli.common.Work;
import io.cistern.cli.trace.Trace;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

/// How passes become the numbers that are reported.
final class ReplayResultTests {
    private static final List<Replay.Pass> PASSES = List.of(
            new Replay.Pass(9_000, 90_000_000, 70, 5_000_000, 1),
            new Replay.Pass(3_000, 30_000_000, 20, 4_000_000, 0),
            new Replay.Pass(1_000, 10_000_000, 10, 3_000_000, 0));

    @Test
    void timesAreTheMedianOfThePassesAfterTheFirst() {
        ReplayResult result = result(Work.NONE, PASSES);

        assertThat(result.nanosPerOperation()).hasValue(200);
        assertThat(result.wallMillis()).hasValue(20);
        assertThat(result.firstPassMillis()).hasValue(90);
        assertThat(result.firstPassDriverCalls()).isEqualTo(70);
        assertThat(result.driverCalls()).isEqualTo(10);
        assertThat(result.failures()).isEqualTo(1);
        assertThat(result.ratio()).hasValue(1.5);
    }

    @Test
    void aSinglePassIsBothFirstAndMedian() {
        assertThat(result(Work.NONE, PASSES.subList(0, 1)).nanosPerOperation()).hasValue(900);
    }

    @Test
    void aCheckedReplayTellsNoTimes() {
        assertThat(ResultWriter.line(result(Work.CHECK, PASSES).fields()))
                .contains("\"nanosPerOperation\":null", "\"wallMillis\":null", "\"firstPassMillis\":null")
                .contains("\"mismatches\":0", "\"driverCalls\":10");
    }

    @Test
    void jsonHasEveryFieldOnOneLine() {
        assertThat(ResultWriter.line(result(Work.MEMSET, PASSES).fields()))
                .isEqualTo(
                        "{\"trace\":\"t\",\"allocator\":\"caching:a=b\",\"device\":\"simulated\",\"work\":\"memset\",\"layer\":\"raw\","
                                + "\"operations\":10,\"skippedRefusals\":2,\"passes\":3,\"failures\":1,\"nanosPerOperation\":200.0,"
                                + "\"requestedPeakBytes\":1000,\"reservedPeakBytes\":1500,\"ratio\":1.5,\"wallMillis\":20.0,"
                                + "\"driverCalls\":10,\"firstPassMillis\":90.0,\"firstPassDriverCalls\":70,"
                                + "\"passDriverCalls\":[70,20,10],\"simulatedDriverMillis\":3.0,\"mismatches\":null,"
                                + "\"metered\":{\"allocations\":5,\"frees\":4,\"requestedTotalBytes\":4000,"
                                + "\"requestedPeakBytes\":1000},\"swaps\":0,\"drained\":0,\"pools\":0,\"driverPools\":null,"
                                + "\"unreturnedBytes\":0}");
    }

    private static ReplayResult result(Work work, List<Replay.Pass> passes) {
        AllocatorStatistics metered = new AllocatorStatistics(5, 4, 1, 100, 1000, 4000, OptionalLong.empty());
        Trace trace = new Trace(
                "t",
                new byte[0],
                new int[0],
                new long[0],
                new int[0],
                0,
                0,
                10,
                1000,
                2,
                new Trace.Origins(new int[0], 1, new int[0], new long[] {1000}, false));
        ReplaySession session = new ReplaySession(
                trace,
                "caching:a=b",
                Routing.Plan.ONE_ALLOCATOR,
                new ReplayDevice.Simulated(OptionalLong.empty()),
                Catalog.of(List.of(), List.of()),
                passes.size(),
                () -> {},
                (_, _) -> true,
                null,
                null);
        return new ReplayResult(
                session,
                work,
                new ReplaySession.Outcome(
                        passes, OptionalLong.empty(), metered, Routing.Counts.NONE, Optional.empty(), 0, 0),
                1500,
                OptionalLong.of(0),
                Map.of());
    }
}
