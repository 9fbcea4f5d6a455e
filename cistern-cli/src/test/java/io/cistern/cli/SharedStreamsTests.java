package io.cistern.cli;

import io.cistern.testkit.SharedStreams;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/// Threads that share streams on the simulated GPU, which also reports misuse in stream order.
class SharedStreamsTests extends SharedStreams {
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
