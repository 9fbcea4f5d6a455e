package io.cistern;

import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.internal.direct.DirectProvider;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

class AbsentDeviceTests {
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(1 << 26).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of()))
            .open();

    @Test
    void whoAsksForItIsToldWhichThereAre() {
        isToldOf(7, () -> memory.allocate(100, 7, 0));
        isToldOf(-1, () -> memory.allocate(100, -1, 0));
        isToldOf(2, () -> memory.current(2));
        try (Allocator allocator = memory.open("direct");
                Scope _ = allocator.enter()) {
            isToldOf(2, () -> memory.allocate(100, 2, 0));
            isToldOf(2, () -> allocator.allocate(100, 2, 0));
            isToldOf(2, () -> allocator.statistics(2));
            isToldOf(2, () -> allocator.reservedBytes(2));
            isToldOf(2, () -> allocator.trim(2, 0, TrimMode.WITHOUT_WAITING));
        }
        isToldOf(2, () -> memory.trim(2, 0, TrimMode.WITHOUT_WAITING));
        memory.close();
    }

    @Test
    void whereThereIsOneThatIsSaid() {
        try (SimulatedGpu one =
                        SimulatedGpu.builder().devices(1).capacityBytes(1 << 26).build();
                DeviceMemory ofOne = DeviceMemory.builder(one)
                        .catalog(Catalog.of(List.of(new DirectProvider()), List.of()))
                        .open()) {
            assertThatExceptionOfType(IndexOutOfBoundsException.class)
                    .isThrownBy(() -> ofOne.allocate(100, 1, 0))
                    .withMessage("there is no device 1: the driver has only device 0");
        }
    }

    private static void isToldOf(int device, ThrowingCallable asking) {
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(asking)
                .withMessage("there is no device %d: the driver has devices 0 to 1", device);
    }
}
