package io.cistern.suites;

import org.junit.jupiter.api.Tag;

/// Runs [SleepingPools] on the driver in the system property `cistern.testkit.driver`: `cuda`, the
/// default, `simulated`, or `auto`.
@Tag("sleep")
public class ChosenSleepingPools extends SleepingPools {
    /// For JUnit.
    public ChosenSleepingPools() {
        super(DriverUnderTest.open());
    }
}
