package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.simulated.Misuse;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.suites.PoolsBetweenDevices;
import org.junit.jupiter.api.AfterEach;

/// Two simulated devices that use each other's memory; only refused fills are misuse.
final class PoolsBetweenDevicesTests extends PoolsBetweenDevices {
    PoolsBetweenDevicesTests() {
        super(SimulatedGpu.builder().devices(2).capacityBytes(2L << 30).build());
    }

    @AfterEach
    void nothingElseWasMisused() {
        assertThat(((SimulatedGpu) driver()).misuses())
                .extracting(Misuse::kind)
                .allMatch(Misuse.Kind.ACCESS_WITHOUT_RIGHTS::equals);
    }
}
