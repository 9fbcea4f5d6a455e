package io.cistern.suites;

/// Checkpoints of graphs' memory on the driver in the system property `cistern.testkit.driver`: `cuda`, the default,
/// `simulated`, or `auto`.
public class ChosenCheckpointedGraphs extends CheckpointedGraphs {
    /// For JUnit.
    public ChosenCheckpointedGraphs() {
        super(DriverUnderTest.open());
    }
}
