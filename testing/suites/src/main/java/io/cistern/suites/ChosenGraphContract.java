package io.cistern.suites;

import io.cistern.cuda.CudaDriver;
import io.cistern.suites.driver.GraphContract;
import org.junit.jupiter.api.Tag;

/// The driver contract's chapters about graphs, on the driver in the system property `cistern.testkit.driver`.
@Tag("graphs")
public class ChosenGraphContract extends GraphContract {
    /// For JUnit.
    public ChosenGraphContract() {}

    @Override
    protected CudaDriver openDriver() {
        return DriverUnderTest.open();
    }
}
