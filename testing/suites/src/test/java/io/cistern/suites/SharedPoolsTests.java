package io.cistern.suites;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/// Two processes on the simulated GPU.
class SharedPoolsTests extends SharedPools {
    @BeforeAll
    static void onTheSimulatedGpu() {
        System.setProperty(DriverUnderTest.PROPERTY, "simulated");
    }

    @AfterAll
    static void asBefore() {
        System.clearProperty(DriverUnderTest.PROPERTY);
    }
}
