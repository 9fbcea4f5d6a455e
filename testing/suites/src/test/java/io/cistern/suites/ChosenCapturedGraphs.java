package io.cistern.suites;

import org.junit.jupiter.api.Tag;

/// Runs [CapturedGraphs] on the driver in the system property `cistern.testkit.driver`: `cuda`, the
/// default, `simulated`, or `auto`.
@Tag("graphs")
public class ChosenCapturedGraphs extends CapturedGraphs {
    /// For JUnit.
    public ChosenCapturedGraphs() {
        super(DriverUnderTest.open());
    }
}
