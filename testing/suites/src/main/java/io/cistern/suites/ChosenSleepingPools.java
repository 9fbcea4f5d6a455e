package io.cistern.suites;

/// Pools that sleep on the driver in the system property `cistern.testkit.driver`: `cuda`, the default,
/// `simulated`, or `auto`.
public class ChosenSleepingPools extends SleepingPools {
    /// For JUnit.
    public ChosenSleepingPools() {
        super(DriverUnderTest.open());
    }
}
