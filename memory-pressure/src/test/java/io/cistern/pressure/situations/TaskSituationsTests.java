package io.cistern.pressure.situations;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.pressure.SpillStatistics;
import io.cistern.simulated.SimulatedGpu;
import java.io.IOException;
import org.junit.jupiter.api.Test;

/// A short run of what `MonteCarlo` does at length. The seed is fixed; a failure names the one that repeats it.
final class TaskSituationsTests {
    private static final long CAPACITY = 256L << 20;
    private static final long FIRST_SEED = 20_260_101;
    private static final int COUNT = 25;

    @Test
    void tasksThatWantThreeTimesWhatThereIsAllEndWithTheRightResults() {
        try (SimulatedGpu gpu =
                SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY).build()) {
            TaskSituations situations = new TaskSituations(gpu, Options.catalog(), "caching", CAPACITY, 12);

            SituationReport report = MonteCarlo.run(situations, FIRST_SEED, COUNT, Integer.MAX_VALUE, System.out);

            assertThat(report.situations()).isEqualTo(COUNT);
            assertThat(report.retries()).isPositive();
            assertThat(report.splits()).isPositive();
            assertThat(gpu.misuses()).isEmpty();
        }
    }

    @Test
    void bytesOfBuffersSurviveAnyOrderOfUses() throws IOException {
        try (SimulatedGpu gpu =
                SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY / 4).build()) {
            SpillStatistics told = SpillSituations.run(gpu, "caching", CAPACITY / 4, 40, FIRST_SEED);

            assertThat(told.writes()).isPositive();
            assertThat(told.returns()).isPositive();
            assertThat(told.failures()).isZero();
            assertThat(gpu.misuses()).isEmpty();
        }
    }
}
