package io.cistern.observability.jmx;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import java.lang.System.Logger.Level;
import java.lang.management.ManagementFactory;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import javax.management.InstanceAlreadyExistsException;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/// Registers a [DeviceMemory] with the platform's MBean server, for JConsole, exporters and `cistern top`.
///
/// ```
/// try (Registration bean = MemoryBeans.register(memory)) { … }
/// java -Dcistern.observe=jmx …                                       // the same without code
/// ```
///
/// **Threads.** Any thread may call any method at any time.
public final class MemoryBeans {
    /// The pattern that matches the names of all beans that this class registers.
    public static final String PATTERN = "io.cistern:type=DeviceMemory,name=*";

    private static final AtomicInteger NUMBERS = new AtomicInteger();

    private MemoryBeans() {}

    /// Registers a [DeviceMemoryMXBean] as `io.cistern:type=DeviceMemory,name=N`, where N counts from 1, until
    /// the registration or the device memory is closed. If the server refuses, this method logs the refusal and
    /// returns a registration that does nothing.
    ///
    /// @return a registration; closing it removes the bean
    public static Registration register(DeviceMemory memory) {
        return register(memory, "");
    }

    /// Registers a [DeviceMemoryMXBean] like [#register(DeviceMemory)], under a name that the program chooses.
    ///
    /// @param name the name to use instead of N; empty to use N. If the server already has a bean of that
    ///     name, this method appends a number
    /// @return a registration; closing it removes the bean
    public static Registration register(DeviceMemory memory, String name) {
        Registered beans = memory.moduleSupport().attachment(Registered.class, _ -> new Registered());
        try {
            return beans.add(registered(new MemoryBean(memory), name));
        } catch (JMException | RuntimeException refused) {
            System.getLogger(MemoryBeans.class.getName())
                    .log(Level.WARNING, "device memory is not visible through JMX", refused);
            return () -> {};
        }
    }

    private static ObjectName registered(DeviceMemoryMXBean bean, String name) throws JMException {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        String wanted = name.isEmpty() ? Integer.toString(NUMBERS.incrementAndGet()) : name;
        while (true) {
            try {
                return server.registerMBean(bean, nameOf(wanted)).getObjectName();
            } catch (InstanceAlreadyExistsException taken) {
                int number = NUMBERS.incrementAndGet();
                wanted = name.isEmpty() ? Integer.toString(number) : name + "-" + number;
            }
        }
    }

    private static ObjectName nameOf(String name) throws JMException {
        boolean isPlain = name.matches("[\\w. -]+");
        return new ObjectName("io.cistern:type=DeviceMemory,name=" + (isPlain ? name : ObjectName.quote(name)));
    }

    /// Holds the beans of one device memory, and unregisters them when it closes.
    private static final class Registered implements AutoCloseable {
        private final Set<ObjectName> names = ConcurrentHashMap.newKeySet();
        private volatile boolean closed;

        Registration add(ObjectName name) {
            names.add(name);
            if (closed) {
                remove(name);
            }
            return () -> remove(name);
        }

        private void remove(ObjectName name) {
            if (!names.remove(name)) {
                return;
            }
            try {
                ManagementFactory.getPlatformMBeanServer().unregisterMBean(name);
            } catch (InstanceNotFoundException gone) {
                // Other code has removed it.
            } catch (JMException | RuntimeException refused) {
                System.getLogger(MemoryBeans.class.getName()).log(Level.WARNING, name + " stays registered", refused);
            }
        }

        @Override
        public void close() {
            closed = true;
            names.forEach(this::remove);
        }
    }
}
