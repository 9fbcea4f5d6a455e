package io.cistern.suites;

import org.junit.jupiter.api.Tag;

/// Runs [PoolsBetweenDevices] on the driver in the system property `cistern.testkit.driver`: `cuda`, the
/// default, `simulated`, or `auto`.
@Tag("two-gpus")
public class ChosenPoolsBetweenDevices extends PoolsBetweenDevices {
    /// For JUnit.
    public ChosenPoolsBetweenDevices() {
        super(DriverUnderTest.open());
    }
}
