package io.cistern.suites.pressure;

import io.cistern.suites.DriverUnderTest;
import org.junit.jupiter.api.Tag;

/// Runs [TaskPressure] with a limit on the driver in the system property `cistern.testkit.driver`: `cuda`, the
/// default, `simulated`, or `auto`.
@Tag("pressure")
public class ChosenTaskPressure extends TaskPressure {
    private static final long BYTES = 256L << 20;

    /// For JUnit.
    public ChosenTaskPressure() {
        super(DriverUnderTest.open(), "limit:bytes=" + BYTES + ",upstream=caching", BYTES);
    }
}
