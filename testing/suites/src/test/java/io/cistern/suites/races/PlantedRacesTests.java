package io.cistern.suites.races;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

class PlantedRacesTests extends PlantedRaces {
    @BeforeAll
    static void onTheSimulatedGpu() {
        System.setProperty("cistern.testkit.driver", "simulated");
    }

    @AfterAll
    static void asBefore() {
        System.clearProperty("cistern.testkit.driver");
    }
}
