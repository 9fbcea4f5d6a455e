package io.cistern.testkit;

import io.cistern.cuda.CudaDriver;
import io.cistern.testkit.driver.DriverContract;

/// The driver contract on the driver in the system property `cistern.testkit.driver`: `cuda`, the default,
/// `simulated`, or `auto`.
public class ChosenDriverContract extends DriverContract {
    /// For JUnit.
    public ChosenDriverContract() {}

    @Override
    protected final CudaDriver openDriver() {
        return DriverUnderTest.open();
    }
}
