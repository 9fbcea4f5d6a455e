package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.testkit.DiscoveredCatalog;
import io.cistern.testkit.Seed;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Runs thousands of [Scenarios] with each allocator in stream order, on the driver in the system property
/// `cistern.testkit.driver`: 200 for each allocator on a simulated GPU, 2000 on a real one, or as many as
/// `cistern.testkit.scenarios` says. Every thousand scenarios, a line reports progress.
///
/// **Repeating one.** The error names the seed and the number of scenarios before it. To run the same sequence
/// again, set `cistern.testkit.seed` to the first seed and `cistern.testkit.scenarios` to that number. To run
/// the failed scenario alone, on a new allocator, set its seed and 1. In the distribution:
///
/// ```text
/// ./cistern gpu-tests -Dcistern.testkit.seed=N -Dcistern.testkit.scenarios=1 --include-tag scenarios
/// ```
@Tag("basic")
@Tag("scenarios")
public class SeededScenarios {
    static final String COUNT = "cistern.testkit.scenarios";
    private static final int PROGRESS = 1000;

    /// For JUnit.
    public SeededScenarios() {}

    static List<String> specs() {
        return List.of(
                "caching",
                "caching:fit=tight",
                "caching:reuse=wait",
                "caching:reuse=never",
                "caching:source=linear",
                "async");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("specs")
    void memoryIsNeverHandedOutBeforeItsLastUseIsPast(String spec) {
        try (CudaDriver driver = DriverUnderTest.open()) {
            try (DeviceMemory memory = DeviceMemory.builder(driver)
                    .catalog(DiscoveredCatalog.find())
                    .open()) {
                memory.setCurrent(spec);
                run(driver, memory, spec);
                assertThat(memory.current(0).statistics(0).liveBlocks()).isZero();
            }
            if (driver instanceof SimulatedGpu simulated) {
                assertThat(simulated.misuses()).isEmpty();
            }
        }
    }

    private static void run(CudaDriver driver, DeviceMemory memory, String spec) {
        long first = Seed.current();
        int count = Integer.getInteger(COUNT, driver.simulated() ? 200 : 2000);
        long begin = System.nanoTime();
        try (Scenarios scenarios = new Scenarios(driver, memory, !spec.contains("linear"))) {
            for (int done = 0; done < count; done++) {
                run(scenarios, first, done);
                if ((done + 1) % PROGRESS == 0) {
                    System.out.printf("%s: %d scenarios, %.1f s%n", spec, done + 1, (System.nanoTime() - begin) / 1e9);
                }
            }
        }
    }

    private static void run(Scenarios scenarios, long first, int before) {
        try {
            scenarios.run(first + before);
        } catch (RuntimeException | AssertionError failure) {
            throw new AssertionError(
                    "scenario with " + Seed.describe(first + before) + ", after " + before + " others from seed "
                            + first,
                    failure);
        }
    }
}
