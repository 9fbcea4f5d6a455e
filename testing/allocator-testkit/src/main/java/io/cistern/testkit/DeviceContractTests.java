package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.cuda.PointerAttribute;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Allocating on two devices.
abstract class DeviceContractTests extends ConformanceContractTests {
    private static final int SECOND = 1;

    DeviceContractTests(AllocatorConformance suite) {
        super(suite);
    }

    @BeforeEach
    void needsTwoDevices() {
        assumeTrue(driver.devices().count() > 1, "needs two devices, there is one");
    }

    @Test
    void memoryComesFromTheDeviceAskedFor() {
        long untouched = driver.memory().freeBytes(DEVICE);
        Block block = allocate(64 * MIB, SECOND, stream(SECOND));
        assertThat(driver.memory().attribute(SECOND, PointerAttribute.DEVICE_ORDINAL, block.address()))
                .isEqualTo(SECOND);
        assertThat(driver.memory().freeBytes(DEVICE)).isEqualTo(untouched);
        free(block);
        assertContents();
    }

    @Test
    void bothDevicesWorkSideBySide() {
        long[] streams = {stream(DEVICE), stream(SECOND)};
        List<Block> blocks = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            blocks.add(allocate((1 + i) * KIB, i % 2, streams[i % 2]));
        }
        blocks.forEach(this::free);
        assertContents();
    }

    @Test
    void eachDeviceIsCountedForItself() {
        allocate(1000, DEVICE, stream(DEVICE));
        allocate(5000, SECOND, stream(SECOND));
        assertThat(allocator.statistics(DEVICE).requestedBytes()).isEqualTo(1000);
        assertThat(allocator.statistics(SECOND).requestedBytes()).isEqualTo(5000);
    }

    @Test
    void aDeviceThatIsNotThereIsRefused() {
        int count = driver.devices().count();
        assertThatThrownBy(() -> allocator.allocate(1, count, 0)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> allocator.allocate(1, -1, 0)).isInstanceOf(IndexOutOfBoundsException.class);
    }
}
