package io.cistern.suites;

/// Captures on the driver in the system property `cistern.testkit.driver`: `cuda`, the default, `simulated`, or
/// `auto`.
public class ChosenCapturedGraphs extends CapturedGraphs {
    /// For JUnit.
    public ChosenCapturedGraphs() {
        super(DriverUnderTest.open());
    }
}
