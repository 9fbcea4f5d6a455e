package io.cistern.suites.pressure;

import io.cistern.simulated.SimulatedGpu;

/// Tasks that share a simulated GPU which is too small for all of them.
final class TaskPressureTests extends TaskPressure {
    private static final long CAPACITY = 64L << 20;

    TaskPressureTests() {
        super(SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY).build(), "caching", CAPACITY);
    }
}
