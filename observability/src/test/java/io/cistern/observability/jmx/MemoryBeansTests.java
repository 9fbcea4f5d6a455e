package io.cistern.observability.jmx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.observability.MemoryFigures;
import io.cistern.observability.ObservedMemory;
import java.lang.management.ManagementFactory;
import javax.management.InstanceNotFoundException;
import javax.management.JMX;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;
import org.junit.jupiter.api.Test;

/// A device memory as a bean, as a monitor sees it.
final class MemoryBeansTests extends ObservedMemory {
    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();

    private static ObjectName name(String name) throws Exception {
        return new ObjectName("io.cistern:type=DeviceMemory,name=" + name);
    }

    private DeviceMemoryMXBean bean(String name) throws Exception {
        return JMX.newMXBeanProxy(server, name(name), DeviceMemoryMXBean.class);
    }

    @Test
    void oneAttributeHasAllFigures() throws Exception {
        long address = allocate(3 * MIB);
        try (Registration _ = MemoryBeans.register(memory, "figures")) {
            MemoryFigures figures = bean("figures").getFigures();
            MemoryFigures here = MemoryFigures.of(memory);
            assertThat(figures.devices()).isEqualTo(here.devices());
            assertThat(figures.nanoTime()).isLessThanOrEqualTo(here.nanoTime());
            assertThat(figures.devices().getFirst().allocators().getFirst().requestedBytes())
                    .isEqualTo(3 * MIB);
        }
        free(address);
    }

    /// A monitor in another process has none of our classes.
    @Test
    void theFiguresAreOpenData() throws Exception {
        long address = allocate(3 * MIB);
        try (Registration _ = MemoryBeans.register(memory, "open")) {
            CompositeData figures = (CompositeData) server.getAttribute(name("open"), "Figures");
            CompositeData device = ((CompositeData[]) figures.get("devices"))[0];
            CompositeData allocator = ((CompositeData[]) device.get("allocators"))[0];
            assertThat(allocator.get("name")).isEqualTo("caching");
            assertThat(allocator.get("requestedBytes")).isEqualTo(3 * MIB);
            assertThat(((CompositeData[]) allocator.get("tiers"))[0].get("hitPercent"))
                    .isInstanceOf(Integer.class);
        }
        free(address);
    }

    @Test
    void sumsAreAttributesOfTheirOwn() throws Exception {
        long address = allocate(3 * MIB);
        try (Registration _ = MemoryBeans.register(memory, "sums")) {
            DeviceMemoryMXBean bean = bean("sums");
            assertThat(bean.getRequestedBytes()).isEqualTo(3 * MIB);
            assertThat(bean.getReservedBytes()).isGreaterThanOrEqualTo(3 * MIB);
            assertThat(bean.getLiveBlocks()).isEqualTo(1);
            assertThat(bean.getDriver()).isEqualTo(gpu.description());
            assertThat(bean.memorySummary(DEVICE)).contains("caching");
        }
        free(address);
    }

    @Test
    void operationsTrimAndReset() throws Exception {
        free(allocate(8 * MIB));
        try (Registration _ = MemoryBeans.register(memory, "operations")) {
            DeviceMemoryMXBean bean = bean("operations");
            assertThat(bean.trim(DEVICE, 0, true)).isGreaterThanOrEqualTo(8 * MIB);
            assertThat(bean.getReservedBytes()).isZero();
            bean.resetPeaks();
            bean.resetTotals();
            var figures = bean.getFigures().devices().getFirst().allocators().getFirst();
            assertThat(figures.requestedPeakBytes()).isZero();
            assertThat(figures.allocations()).isZero();
            assertThatThrownBy(() -> bean.trim(7, 0, true)).isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    @Test
    void namesThatAreTakenGetANumber() throws Exception {
        ObjectName pattern = name("twin*");
        try (Registration _ = MemoryBeans.register(memory, "twin");
                Registration _ = MemoryBeans.register(memory, "twin")) {
            assertThat(server.queryNames(pattern, null)).hasSize(2).contains(name("twin"));
        }
        assertThat(server.queryNames(pattern, null)).isEmpty();
    }

    @Test
    void aNameMayHoldAnything() throws Exception {
        try (Registration _ = MemoryBeans.register(memory, "a,b=*\"c")) {
            assertThat(server.queryNames(new ObjectName(MemoryBeans.PATTERN), null))
                    .anyMatch(found -> ObjectName.unquote(quoted(found)).equals("a,b=*\"c"));
        }
    }

    private static String quoted(ObjectName found) {
        String name = found.getKeyProperty("name");
        return name.startsWith("\"") ? name : "\"" + name + "\"";
    }

    @Test
    void aBeanGoesWithItsDeviceMemory() throws Exception {
        DeviceMemory other = DeviceMemory.builder(gpu).catalog(found()).open();
        Registration registration = MemoryBeans.register(other, "short");
        assertThat(server.isRegistered(name("short"))).isTrue();
        other.close();
        assertThat(server.isRegistered(name("short"))).isFalse();
        registration.close();
        MemoryBeans.register(other, "late");
        assertThatThrownBy(() -> server.getMBeanInfo(name("late"))).isInstanceOf(InstanceNotFoundException.class);
    }
}
