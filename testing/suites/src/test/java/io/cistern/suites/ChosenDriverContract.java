package io.cistern.suites;

import io.cistern.cuda.CudaDriver;
import io.cistern.suites.driver.DriverContract;
import org.junit.jupiter.api.Tag;

/// Runs the driver contract on the driver in the system property `cistern.testkit.driver`: `cuda`, the
/// default, `simulated`, or `auto`.
@Tag("basic")
public class ChosenDriverContract extends DriverContract {
    /// For JUnit.
    public ChosenDriverContract() {}

    @Override
    protected final CudaDriver openDriver() {
        return DriverUnderTest.open();
    }
}
