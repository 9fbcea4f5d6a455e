package io.cistern.observability.jmx;

import io.cistern.Registration;
import java.lang.System.Logger.Level;
import java.lang.management.ManagementFactory;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.ObjectName;

/// Holds the beans of one device memory, and unregisters them when it closes.
///
/// **Threads.** Any.
final class RegisteredBeans implements AutoCloseable {
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
            // Somebody else removed it.
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
