package io.cistern.suites;

import org.junit.jupiter.api.Tag;

/// Runs [ScopedPools] on the driver in the system property `cistern.testkit.driver`: `cuda`, the
/// default, `simulated`, or `auto`.
@Tag("basic")
public class ChosenScopedPools extends ScopedPools {
    /// For JUnit.
    public ChosenScopedPools() {
        super(DriverUnderTest.open());
    }
}
