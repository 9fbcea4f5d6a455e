package io.cistern.suites;

import io.cistern.cuda.CudaDriver;
import io.cistern.suites.driver.GraphContract;
import org.junit.jupiter.api.Tag;

/// Runs the driver contract's tests of graphs on the driver in the system property `cistern.testkit.driver`.
@Tag("graphs")
public class ChosenGraphContract extends GraphContract {
    /// For JUnit.
    public ChosenGraphContract() {}

    @Override
    protected CudaDriver openDriver() {
        return DriverUnderTest.open();
    }
}
