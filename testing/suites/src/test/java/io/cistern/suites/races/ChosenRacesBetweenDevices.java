package io.cistern.suites.races;

import io.cistern.suites.DriverUnderTest;
import org.junit.jupiter.api.Tag;

/// Runs [RacesBetweenDevices] on the driver in the system property `cistern.testkit.driver`.
@Tag("two-gpus")
public class ChosenRacesBetweenDevices extends RacesBetweenDevices {
    /// For JUnit.
    public ChosenRacesBetweenDevices() {
        super(DriverUnderTest.open());
    }
}
