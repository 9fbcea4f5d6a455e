package io.cistern.suites;

import org.junit.jupiter.api.Tag;

/// Runs [CheckpointedGraphs] on the driver in the system property `cistern.testkit.driver`: `cuda`, the
/// default, `simulated`, or `auto`.
@Tag("graphs")
public class ChosenCheckpointedGraphs extends CheckpointedGraphs {
    /// For JUnit.
    public ChosenCheckpointedGraphs() {
        super(DriverUnderTest.open());
    }
}
