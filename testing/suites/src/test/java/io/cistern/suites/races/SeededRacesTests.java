package io.cistern.suites.races;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

class SeededRacesTests extends SeededRaces {
    @BeforeAll
    static void onTheSimulatedGpu() {
        System.setProperty("cistern.testkit.driver", "simulated");
    }

    @AfterAll
    static void asBefore() {
        System.clearProperty("cistern.testkit.driver");
    }
}
