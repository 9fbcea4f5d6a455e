package io.cistern.observability.jmx;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Registration;
import io.cistern.observability.ObservedMemory;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.management.JMX;
import javax.management.ObjectName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// History and snapshots by the bean, as a monitor asks for them.
final class SnapshotBeanTests extends ObservedMemory {
    @Test
    void aMonitorRecordsAndTakesASnapshot(@TempDir Path folder) throws Exception {
        try (Registration _ = MemoryBeans.register(memory, "snapshots")) {
            DeviceMemoryMXBean bean = JMX.newMXBeanProxy(
                    ManagementFactory.getPlatformMBeanServer(),
                    new ObjectName("io.cistern:type=DeviceMemory,name=snapshots"),
                    DeviceMemoryMXBean.class);
            bean.startHistory(100, true);
            assertThat(bean.isHistoryOn()).isTrue();
            long address = allocate(MIB);
            Path file = folder.resolve("now.json");
            bean.snapshot(file.toString());
            bean.stopHistory();
            assertThat(bean.isHistoryOn()).isFalse();
            assertThat(Files.readString(file)).contains("\"address\":" + address, "\"event\":\"allocated\"");
            free(address);
        }
    }
}
