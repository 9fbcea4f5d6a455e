package io.cistern.suites.pressure;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaDriver;
import io.cistern.pressure.SpillStatistics;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.testkit.Seed;
import java.io.IOException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Tasks that share too little device memory; contents are checked. The system property
/// `cistern.testkit.scenarios` sets the number of scenarios. A failure names the seed that repeats it.
public abstract class TaskPressure {
    private static final int TASKS = 12;
    private static final int USES = 40;

    private final CudaDriver driver;
    private final String allocator;
    private final long capacityBytes;

    /// Runs the tests on a driver, and closes it after the test.
    ///
    /// @param allocator the spec of an allocator that has so many bytes to give
    protected TaskPressure(CudaDriver driver, String allocator, long capacityBytes) {
        this.driver = driver;
        this.allocator = allocator;
        this.capacityBytes = capacityBytes;
    }

    @AfterEach
    void nothingWasMisused() {
        if (driver instanceof SimulatedGpu simulated) {
            assertThat(simulated.misuses()).isEmpty();
        }
        driver.close();
    }

    @Test
    void tasksThatWantThreeTimesWhatThereIsAllEndWithTheRightResults() {
        TaskScenarios scenarios = new TaskScenarios(driver, allocator, capacityBytes, TASKS);
        int usual = driver.simulated() ? 25 : 100;
        int count = Integer.getInteger("cistern.testkit.scenarios", usual);
        ScenarioReport sum = ScenarioReport.NONE;
        for (int done = 0; done < count; done++) {
            sum = sum.plus(run(scenarios, Seed.current() + done));
        }
        System.out.println(sum);
        assertThat(sum.scenarios()).isEqualTo(count);
        if (count >= usual) { // One scenario may need neither.
            assertThat(sum.retries()).isPositive();
            assertThat(sum.splits()).isPositive();
        }
    }

    private static ScenarioReport run(TaskScenarios scenarios, long seed) {
        try {
            return scenarios.run(seed);
        } catch (RuntimeException | Error failure) {
            throw new AssertionError("scenario with " + Seed.describe(seed), failure);
        }
    }

    @Test
    void bytesOfBuffersSurviveAnyOrderOfUses() throws IOException {
        SpillStatistics spilled = SpillScenarios.run(driver, allocator, capacityBytes, USES, Seed.current());
        assertThat(spilled.writes()).isPositive();
        assertThat(spilled.returns()).isPositive();
        assertThat(spilled.failures()).isZero();
    }
}
