package io.cistern.observability;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.observability.jmx.MemoryBeans;
import io.cistern.simulated.SimulatedGpu;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import javax.management.ObjectName;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

/// The setting `cistern.observe`.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
final class NamedObserversTests {
    private static final String SETTING = "cistern.observe";

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final Logger logger = Logger.getLogger("io.cistern.ModuleSupport$Observer");
    private final List<String> logged = new ArrayList<>();
    private final Handler handler = new Handler() {
        @Override
        public void publish(LogRecord record) {
            logged.add(record.getMessage());
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };

    @BeforeEach
    void listen() {
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
    }

    @AfterEach
    void forget() {
        System.clearProperty(SETTING);
        logger.removeHandler(handler);
        logger.setUseParentHandlers(true);
    }

    private static int beans() throws Exception {
        return ManagementFactory.getPlatformMBeanServer()
                .queryNames(new ObjectName(MemoryBeans.PATTERN), null)
                .size();
    }

    @Test
    void anObserverThatIsNamedBeginsWithTheMemory() throws Exception {
        int before = beans();
        System.setProperty(SETTING, "jfr, jmx");
        try (DeviceMemory _ = DeviceMemory.builder(gpu).open()) {
            assertThat(beans()).isEqualTo(before + 1);
        }
        assertThat(beans()).isEqualTo(before);
        assertThat(logged).isEmpty();
    }

    @Test
    void withoutTheSettingNoneBegins() throws Exception {
        int before = beans();
        try (DeviceMemory _ = DeviceMemory.builder(gpu).open()) {
            assertThat(beans()).isEqualTo(before);
        }
    }

    @Test
    void aNameThatIsNoneIsToldWithTheKnownOnes() throws Exception {
        System.setProperty(SETTING, "jxm");
        try (DeviceMemory _ = DeviceMemory.builder(gpu).open()) {
            assertThat(logged).singleElement().asString().contains("'jxm'", "jmx, jfr, nvtx", "cistern.observe");
        }
    }
}
