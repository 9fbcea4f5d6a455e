package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.simulated.SimulatedGpu;
import io.cistern.suites.SleepingPools;
import org.junit.jupiter.api.AfterEach;

/// Pools that sleep on the simulated GPU, which tells of memory that is unmapped while it is used.
final class SleepingPoolsTests extends SleepingPools {
    private static final long GIB = 1L << 30;

    SleepingPoolsTests() {
        super(SimulatedGpu.builder().capacityBytes(2 * GIB).build());
    }

    @AfterEach
    void nothingWasMisused() {
        assertThat(((SimulatedGpu) driver()).misuses()).isEmpty();
    }
}
