package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.cli.common.Plugins;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import java.util.Map;
import org.junit.jupiter.api.Test;

/// The error of a program names the setting that is wrong.
final class SettingBlameTests {
    @Test
    void aBadDefinitionIsNamedByItsOwnKey() {
        assertFirstRequestFails(
                Map.of("cistern.define.foo", "asink", "cistern.allocator", "foo"),
                "property cistern.define.foo: no allocator is named 'asink'");
    }

    @Test
    void aBadLevelOfChecksIsNotBlamedOnThePriority() {
        assertFirstRequestFails(Map.of("cistern.check", "foo"), "property cistern.check: 'foo' is not one of ");
    }

    private static void assertFirstRequestFails(Map<String, String> set, String begin) {
        set.forEach(System::setProperty);
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory = DeviceMemory.builder(gpu)
                        .catalog(Plugins.catalogWhateverIsSet())
                        .open()) {
            assertThatThrownBy(() -> memory.allocate(1024, 0, 0))
                    .isInstanceOf(ConfigurationException.class)
                    .hasMessageStartingWith(begin);
        } finally {
            set.keySet().forEach(System::clearProperty);
        }
    }
}
