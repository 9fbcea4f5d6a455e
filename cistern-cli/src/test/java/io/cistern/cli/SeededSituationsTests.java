package io.cistern.cli;

import io.cistern.testkit.SeededSituations;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/// The situations on the simulated GPU, which also reports misuse in stream order.
class SeededSituationsTests extends SeededSituations {
    private static final String DRIVER = "cistern.testkit.driver";

    @BeforeAll
    static void onTheSimulatedGpu() {
        System.setProperty(DRIVER, "simulated");
    }

    @AfterAll
    static void asBefore() {
        System.clearProperty(DRIVER);
    }
}
