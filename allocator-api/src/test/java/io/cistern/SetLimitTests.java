package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.jvm.LogOf;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/// Limits that are set from outside the program.
class SetLimitTests {
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(64 * MIB).build();

    @RegisterExtension
    final LogOf log = new LogOf(DeviceMemory.class.getName());

    private final List<String> set = new ArrayList<>();

    @AfterEach
    void clear() {
        set.forEach(System::clearProperty);
        gpu.close();
    }

    @Test
    void eachDeviceHasItsOwnOrThatOfAll() {
        set("cistern.limit", "2MiB");
        set("cistern.device.1.limit", "8MiB");
        try (DeviceMemory memory = builder().open()) {
            assertThatThrownBy(() -> memory.allocate(3 * MIB, 0, 0))
                    .isInstanceOf(DeviceOutOfMemoryException.class)
                    .hasMessageContaining("device 0 (property cistern.limit): limit of " + 2 * MIB);
            memory.free(memory.allocate(3 * MIB, 1, 0), 0);
            assertThatThrownBy(() -> memory.allocate(9 * MIB, 1, 0))
                    .hasMessageContaining("device 1 (property cistern.device.1.limit): limit of " + 8 * MIB);
        }
    }

    @Test
    void noneLiftsTheLimitOfOneDeviceOrOfAll() {
        set("cistern.limit", "2MiB");
        set("cistern.device.1.limit", "None");
        try (DeviceMemory memory = builder().open()) {
            assertThat(memory.limits().device(0).byteSize()).isEqualTo(2 * MIB);
            assertThat(memory.limits().device(1).isSet()).isFalse();
            memory.free(memory.allocate(3 * MIB, 1, 0), 0);
        }
        set("cistern.limit", "none");
        try (DeviceMemory memory = builder().open()) {
            assertThat(memory.limits().device(0).isSet()).isFalse();
        }
        assertThat(log.messages()).isEmpty();
    }

    @Test
    void whatCodeSaysComesFirst() {
        set("cistern.limit", "2MiB");
        try (DeviceMemory memory = builder().limitBytes(4 * MIB).open()) {
            long block = memory.allocate(3 * MIB, 0, 0);
            assertThat(block).isNotZero();
            memory.free(block, 0);
        }
    }

    @Test
    void theLimitOfADeviceCanBeReadAndChanged() {
        set("cistern.device.0.limit", "2MiB");
        try (DeviceMemory memory = builder().open()) {
            assertThat(memory.limits().device(1).isSet()).isFalse();
            MemoryLimit limit = memory.limits().device(0);
            assertThat(limit.byteSize()).isEqualTo(2 * MIB);
            limit.setByteSize(4 * MIB);
            long block = memory.allocate(3 * MIB, 0, 0);
            assertThat(limit.usedBytes()).isEqualTo(3 * MIB);
            memory.free(block, 0);
            assertThatThrownBy(() -> memory.limits().device(2)).isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    @Test
    void whatIsNoNumberOfBytesIsAnErrorThatNamesItsSource() {
        set("cistern.limit", "8GB");

        assertThatThrownBy(() -> builder().open())
                .isInstanceOf(ConfigurationException.class)
                .hasMessageStartingWith("property cistern.limit: '8GB' could mean powers of 1000 or of 1024");
        assertThat(gpu.misuses()).isEmpty();
    }

    @Test
    void aLimitOfADeviceThatIsNotThereIsToldAndDoesNoHarm() {
        set("cistern.device.3.limit", "2MiB");
        try (DeviceMemory memory = builder().open()) {
            memory.free(memory.allocate(3 * MIB, 1, 0), 0);
        }
        assertThat(log.messages())
                .containsExactly(
                        "property cistern.device.3.limit: there is no device 3; this process sees devices 0 to 1");
    }

    /// Though the program chooses its allocators itself, and never asks the settings for one.
    @Test
    void aKeyThatIsNoSettingIsToldOnceInAProcess() {
        set("cistern.limt", "2MiB");
        for (int again = 0; again < 2; again++) {
            try (DeviceMemory memory = builder().open()) {
                memory.setCurrent("direct");
            }
        }
        assertThat(log.messages())
                .singleElement()
                .asString()
                .startsWith(
                        "property cistern.limt: there is no setting 'cistern.limt'; known, nearest first: cistern.limit,");
    }

    private void set(String key, String value) {
        System.setProperty(key, value);
        set.add(key);
    }

    private DeviceMemory.Builder builder() {
        return DeviceMemory.builder(gpu).catalog(Catalog.of(List.of(new DirectProvider()), List.of()));
    }
}
