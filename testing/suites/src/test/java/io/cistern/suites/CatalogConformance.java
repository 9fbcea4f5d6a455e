package io.cistern.suites;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.testkit.AllocatorConformance;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/// Runs the conformance suite for every discovered allocator that can run, each by its name, and for the
/// caching one over every segment source. Allocators need not enrol; if none is found, the suite fails.
///
/// The driver is the one in the system property `cistern.testkit.driver`: `cuda`, the default, `simulated`, or
/// `auto`. If `cistern.testkit.specs` is set, the suite runs its specs instead. They are separated by commas,
/// so each can have one option at most.
@Tag("basic")
@ParameterizedClass(name = "{0}", allowZeroInvocations = false)
@MethodSource("runnableSpecs")
public class CatalogConformance extends AllocatorConformance {
    /// On hardware it may take more than the device has, and then memory of the host, without being refused.
    private static final String MANAGED = "caching:source=managed";

    @Parameter
    String spec = "";

    /// For JUnit.
    public CatalogConformance() {}

    static List<String> runnableSpecs() {
        String asked = System.getProperty("cistern.testkit.specs", "");
        if (!asked.isEmpty()) {
            return List.of(asked.split(",", -1));
        }
        try (CudaDriver driver = DriverUnderTest.open()) {
            return RunnableSpecs.on(driver).stream()
                    .filter(spec -> driver.simulated() || !spec.equals(MANAGED))
                    .toList();
        }
    }

    @Override
    protected final Allocator open(DeviceMemory memory) {
        return memory.open(spec);
    }

    @Override
    protected final CudaDriver openDriver() {
        return DriverUnderTest.open();
    }
}
