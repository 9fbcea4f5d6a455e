package io.cistern.loader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.errors.ConfigurationException;
import io.cistern.jvm.LogOf;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A program hears of all its wrong settings at once, and of each once.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
class WrongSettingsTests {
    @RegisterExtension
    final LogOf log = new LogOf(DeviceMemory.class.getName());

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final List<String> set = new ArrayList<>();

    private void set(String key, String value) {
        System.setProperty(key, value);
        set.add(key);
    }

    private DeviceMemory open() {
        return DeviceMemory.builder(gpu)
                .catalog(Catalog.discover(List.of(), List.of()))
                .open();
    }

    @AfterEach
    void clear() {
        set.forEach(System::clearProperty);
        gpu.close();
    }

    @Test
    void aFailureNamesAllOfThem() {
        set("cistern.limit", "8GB");
        set("cistern.allocator", "cacing");
        set("cistern.simulated.devices", "0");
        set("cistern.limt", "8GiB");
        assertThatThrownBy(this::open)
                .isInstanceOf(ConfigurationException.class)
                .satisfies(failure -> assertThat(failure.getMessage().lines())
                        .satisfiesExactly(
                                line -> assertThat(line).startsWith("property cistern.limit: '8GB' could mean"),
                                line -> assertThat(line).startsWith("property cistern.limt: there is no setting"),
                                line -> assertThat(line)
                                        .startsWith("property cistern.allocator: no allocator is named 'cacing'"),
                                line -> assertThat(line).startsWith("property cistern.simulated.devices: '0' is not")));
    }

    @Test
    void aFailureOfTheChoiceNamesAllOfThem() {
        set("cistern.limt", "8GiB");
        set("cistern.device.0.allocator", "cacing");
        try (DeviceMemory memory = open()) {
            assertThatThrownBy(() -> memory.current(0))
                    .satisfies(
                            failure -> assertThat(failure.getMessage().lines()).hasSize(2))
                    .hasMessageContaining("'cistern.limt'")
                    .hasMessageContaining("'cacing'");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"leaks", "check", "hazards", "scopes.report", "copies.report", "copies.direct"})
    void aSingleWrongWordStopsTheChoice(String key) {
        set("cistern." + key, "maybe");
        try (DeviceMemory memory = open()) {
            assertThatThrownBy(() -> memory.current(0))
                    .isInstanceOf(ConfigurationException.class)
                    .hasMessageStartingWith("property cistern." + key + ": 'maybe' is not one of ");
        }
    }

    @Test
    void aWrongWordIsAWarningIfTheProgramChooses() {
        set("cistern.leaks", "maybe");
        try (DeviceMemory memory = open()) {
            memory.setCurrent("direct");
            assertThat(log.messages())
                    .containsExactly("property cistern.leaks: 'maybe' is not one of off, sampled, sites, all");
        }
    }

    @Test
    void aWrongKeyThatFailsIsNotLoggedToo() {
        set("cistern.leakz", "all");
        try (DeviceMemory memory = open()) {
            assertThatThrownBy(() -> memory.current(0)).hasMessageContaining("'cistern.leakz'");
            assertThat(log.messages()).isEmpty();
        }
    }
}
