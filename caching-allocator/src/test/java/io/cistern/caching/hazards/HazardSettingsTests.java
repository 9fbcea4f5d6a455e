package io.cistern.caching.hazards;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.errors.ConfigurationException;
import io.cistern.hazards.StreamHazards;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

/// The settings `cistern.check=streams` and `cistern.hazards`.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
class HazardSettingsTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().build();

    @AfterEach
    void forget() {
        System.clearProperty("cistern.check");
        System.clearProperty("cistern.hazards");
        gpu.close();
    }

    @Test
    void theCheckIsOnInAnyLetterCase() {
        System.setProperty("cistern.check", "Streams");
        try (DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            assertThat(StreamHazards.isSet()).isTrue();
            assertThat(StreamHazards.of(memory)).isPresent();
        }
    }

    @Test
    void aMisspelledReactionDoesNotTurnTheCheckOff() {
        System.setProperty("cistern.check", "streams");
        System.setProperty("cistern.hazards", "trow");
        assertThatThrownBy(() -> DeviceMemory.builder(gpu).open())
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("cistern.hazards")
                .hasMessageContaining("warning, throw, list");
    }
}
