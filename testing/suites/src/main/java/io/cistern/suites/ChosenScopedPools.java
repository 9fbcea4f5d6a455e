package io.cistern.suites;

/// Scopes and swaps on the driver in the system property `cistern.testkit.driver`: `cuda`, the default,
/// `simulated`, or `auto`.
public class ChosenScopedPools extends ScopedPools {
    /// For JUnit.
    public ChosenScopedPools() {
        super(DriverUnderTest.open());
    }
}
