package io.cistern.simulated;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What `cistern.simulated.…` sets from outside.
final class MachineSettingsTests {
    private static final String DEVICES = "cistern.simulated.devices";
    private static final String CAPACITY = "cistern.simulated.capacity";

    @AfterEach
    void clear() {
        System.clearProperty(DEVICES);
        System.clearProperty(CAPACITY);
    }

    @ParameterizedTest
    @CsvSource({"8GiB, 8589934592", "8g, 8589934592", "0.5MiB, 524288", "1048576, 1048576"})
    void aNumberOfBytesIsWrittenAsAnywhere(String text, long bytes) {
        System.setProperty(DEVICES, "2");
        System.setProperty(CAPACITY, text);
        try (SimulatedGpu gpu = SimulatedGpu.builder().build()) {
            assertThat(gpu.devices().count()).isEqualTo(2);
            assertThat(gpu.memory().freeBytes(1)).isEqualTo(bytes);
        }
    }

    @ParameterizedTest
    @CsvSource({
        DEVICES + ", 0, is not a number from 1 to 999",
        DEVICES + ", two, is not a number from 1 to 999",
        DEVICES + ", 1000, is not a number from 1 to 999",
        CAPACITY + ", 0, is not a number of bytes from 1 to 8TiB",
        CAPACITY + ", 9TiB, is not a number of bytes from 1 to 8TiB",
        CAPACITY + ", 50%, is a share of a device",
        CAPACITY + ", 8GB, could mean powers of 1000 or of 1024",
        CAPACITY + ", much, is not a number of bytes; write it like 1048576"
    })
    void whatIsNotLegalIsAnErrorThatSaysWhoSetItAndWhatWouldBe(String key, String text, String why) {
        System.setProperty(key, text);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> SimulatedGpu.builder().build())
                .withMessageStartingWith("property " + key + ": '" + text + "' " + why);
    }

    @Test
    void whatIsLegalByItselfIsTogether() {
        System.setProperty(DEVICES, "999");
        System.setProperty(CAPACITY, "8TiB");
        try (SimulatedGpu gpu = SimulatedGpu.builder().build()) {
            assertThat(gpu.memory().freeBytes(998)).isEqualTo(8L << 40);
        }
    }

    @Test
    void aBadSettingThatCodeOverridesStopsNothing() {
        System.setProperty(DEVICES, "two");
        System.setProperty(CAPACITY, "much");
        try (SimulatedGpu gpu =
                SimulatedGpu.builder().devices(2).capacityBytes(4096).build()) {
            assertThat(gpu.memory().freeBytes(1)).isEqualTo(4096);
        }
    }

    @Test
    void codeSaysTheLastWord() {
        System.setProperty(DEVICES, "2");
        try (SimulatedGpu gpu = SimulatedGpu.builder().devices(3).build()) {
            assertThat(gpu.devices().count()).isEqualTo(3);
        }
    }
}
