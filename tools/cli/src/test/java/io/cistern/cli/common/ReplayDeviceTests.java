package io.cistern.cli.common;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

class ReplayDeviceTests {
    private static final long CAPACITY = 64L << 20;
    private static final long CONTEXT = 1L << 20;
    private static final long PIECE = 2L << 20;

    @Test
    void aReplayOnARealDeviceFindsItsCapacityAndGivesTheRestBack() {
        try (CudaDriver driver = SimulatedGpu.builder().devices(3).build()) {
            ReplayDevice device = new ReplayDevice.Real(driver, 1, OptionalLong.of(CAPACITY));
            long all = driver.memory().freeBytes(0);

            try (ReplayDevice.Rest _ = device.holdRest(2)) {
                assertThat(driver.memory().freeBytes(0)).isEqualTo(all);
                assertThat(driver.memory().freeBytes(1)).isBetween(CAPACITY - CONTEXT, CAPACITY + PIECE);
                assertThat(driver.memory().freeBytes(2)).isBetween(CAPACITY - CONTEXT, CAPACITY + PIECE);
            }
            assertThat(driver.memory().freeBytes(1)).isBetween(all - CONTEXT, all);
            assertThat(driver.memory().freeBytes(2)).isBetween(all - CONTEXT, all);
        }
    }

    @Test
    void aDeviceThatHasLessThanTheCapacityIsHeldByNobody() {
        try (CudaDriver driver = SimulatedGpu.builder().capacityBytes(CAPACITY).build()) {
            ReplayDevice device = new ReplayDevice.Real(driver, 0, OptionalLong.empty()).withCapacity(2 * CAPACITY);

            try (ReplayDevice.Rest _ = device.holdRest(1)) {
                assertThat(driver.memory().freeBytes(0)).isEqualTo(CAPACITY);
            }
        }
    }
}
