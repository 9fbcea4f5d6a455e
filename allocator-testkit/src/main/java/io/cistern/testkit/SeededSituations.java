package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Thousands of [Situations] through each allocator in stream order, on the driver in the system property
/// `cistern.testkit.driver`: 200 through each on a simulated GPU, 2000 on a real one, or as many as
/// `cistern.testkit.situations` says.
public class SeededSituations {
    static final String COUNT = "cistern.testkit.situations";

    /// For JUnit.
    public SeededSituations() {}

    static List<String> specs() {
        return List.of("caching", "caching:reuse=passed", "caching:reuse=never", "caching:source=linear", "async");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("specs")
    void memoryIsNeverHandedOutBeforeItsLastUseIsPast(String spec) {
        try (CudaDriver driver = DriverUnderTest.open()) {
            try (DeviceMemory memory = DeviceMemory.open(driver, DiscoveredCatalog.find())) {
                memory.setCurrent(spec);
                run(driver, memory, !spec.contains("linear"));
                assertThat(memory.current().statistics(0).liveBlocks()).isZero();
            }
            if (driver instanceof SimulatedGpu simulated) {
                assertThat(simulated.misuses()).isEmpty();
            }
        }
    }

    private static void run(CudaDriver driver, DeviceMemory memory, boolean freesWithoutWaiting) {
        long first = Seed.current();
        try (Situations situations = new Situations(driver, memory, freesWithoutWaiting)) {
            for (long seed = first; seed < first + Integer.getInteger(COUNT, driver.simulated() ? 200 : 2000); seed++) {
                situations.run(seed);
            }
        }
    }
}
