package io.cistern.suites.races;

import io.cistern.simulated.SimulatedGpu;

final class RacesBetweenDevicesTests extends RacesBetweenDevices {
    RacesBetweenDevicesTests() {
        super(SimulatedGpu.builder().devices(2).build());
    }
}
