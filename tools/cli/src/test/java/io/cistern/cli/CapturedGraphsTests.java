package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.simulated.SimulatedGpu;
import io.cistern.suites.CapturedGraphs;
import org.junit.jupiter.api.AfterEach;

/// Captures on the simulated GPU, which tells of memory that is used without order: this module has all allocators on
/// its class path.
final class CapturedGraphsTests extends CapturedGraphs {
    CapturedGraphsTests() {
        super(SimulatedGpu.builder().build());
    }

    @AfterEach
    void nothingWasMisused() {
        assertThat(((SimulatedGpu) driver()).misuses()).isEmpty();
    }
}
