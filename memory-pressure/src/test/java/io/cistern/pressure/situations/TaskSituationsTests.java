package io.cistern.pressure.situations;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.Test;

/// A short run of what `MonteCarlo` does at length. The seed is fixed; a failure names the one that repeats it.
final class TaskSituationsTests {
    private static final long CAPACITY = 256L << 20;
    private static final long FIRST_SEED = 20_260_101;
    private static final int COUNT = 40;

    @Test
    void tasksThatWantThreeTimesWhatThereIsAllEndWithTheRightResults() {
        try (SimulatedGpu gpu =
                SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY).build()) {
            TaskSituations situations = new TaskSituations(gpu, MonteCarlo.catalog(), "caching", CAPACITY, 12);

            SituationReport report = MonteCarlo.run(situations, FIRST_SEED, COUNT, System.out);

            assertThat(report.situations()).isEqualTo(COUNT);
            assertThat(report.retries()).isPositive();
            assertThat(report.splits()).isPositive();
            assertThat(gpu.misuses()).isEmpty();
        }
    }
}
