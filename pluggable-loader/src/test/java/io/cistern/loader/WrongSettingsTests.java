package io.cistern.loader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
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

/// A program hears of each wrong setting once.
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
    void aWrongKeyThatFailsIsNotLoggedToo() {
        set("cistern.leakz", "all");
        try (DeviceMemory memory = open()) {
            assertThatThrownBy(() -> memory.current(0)).hasMessageContaining("'cistern.leakz'");
            assertThat(log.messages()).isEmpty();
        }
    }
}
