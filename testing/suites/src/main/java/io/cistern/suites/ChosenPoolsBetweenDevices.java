package io.cistern.suites;

/// Pools between devices on the driver in the system property `cistern.testkit.driver`: `cuda`, the default,
/// `simulated`, or `auto`.
public class ChosenPoolsBetweenDevices extends PoolsBetweenDevices {
    /// For JUnit.
    public ChosenPoolsBetweenDevices() {
        super(DriverUnderTest.open());
    }
}
