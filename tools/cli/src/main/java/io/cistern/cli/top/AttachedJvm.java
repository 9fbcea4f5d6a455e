package io.cistern.cli.top;

import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import io.cistern.cli.common.UsageException;
import io.cistern.observability.jmx.DeviceMemoryMXBean;
import io.cistern.observability.jmx.MemoryBeans;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.UndeclaredThrowableException;
import java.nio.file.Path;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.JMX;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/// Watches a JVM on this machine through JMX. Attaching starts the JVM's management agent, which listens only
/// on this machine and stays.
final class AttachedJvm implements WatchedProgram {
    private static final String SNAPSHOT = "snapshot";

    private final String pid;
    private final String title;
    private final JMXConnector connector;
    private final MBeanServerConnection server;

    private AttachedJvm(String pid, String title, JMXConnector connector) throws IOException {
        this.pid = pid;
        this.title = title;
        this.connector = connector;
        this.server = connector.getMBeanServerConnection();
    }

    /// Attaches to a process.
    ///
    /// @throws UsageException if that fails; the message says why
    @SuppressWarnings("BanJNDI") // A process of this user supplied the address itself.
    static AttachedJvm attach(String pid) {
        try {
            VirtualMachine machine = VirtualMachine.attach(pid);
            try {
                String command = machine.getSystemProperties().getProperty("sun.java.command", "");
                JMXServiceURL url = new JMXServiceURL(machine.startLocalManagementAgent());
                return new AttachedJvm(pid, command, JMXConnectorFactory.connect(url));
            } finally {
                machine.detach();
            }
        } catch (IOException | AttachNotSupportedException | RuntimeException e) {
            throw new UsageException("process " + pid + " can't be inspected: " + e.getMessage());
        }
    }

    @Override
    public String title() {
        return "process " + pid + " " + title;
    }

    String pid() {
        return pid;
    }

    /// Returns the program's class or JAR, with its arguments.
    String command() {
        return title;
    }

    List<String> memories() throws IOException {
        return names().stream().map(AttachedJvm::shown).toList();
    }

    private Set<ObjectName> names() throws IOException {
        try {
            return new TreeSet<>(server.queryNames(new ObjectName(MemoryBeans.PATTERN), null));
        } catch (JMException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String shown(ObjectName name) {
        String value = name.getKeyProperty("name");
        return value.startsWith("\"") ? ObjectName.unquote(value) : value;
    }

    @Override
    public List<Reading> read() throws IOException {
        List<Reading> readings = new ArrayList<>();
        for (ObjectName name : names()) {
            try {
                DeviceMemoryMXBean bean = JMX.newMXBeanProxy(server, name, DeviceMemoryMXBean.class);
                readings.add(new Reading(shown(name), bean.getFigures()));
            } catch (UndeclaredThrowableException failure) {
                // A memory that was closed since the names were read is left out.
                if (!(failure.getCause() instanceof InstanceNotFoundException)) {
                    throw new IOException("the bean " + name + " has no figures: " + failure.getCause(), failure);
                }
            }
        }
        return readings;
    }

    @Override
    public List<WaitingThread> waiting() throws IOException {
        return WaitingThread.of(ManagementFactory.getPlatformMXBean(server, ThreadMXBean.class));
    }

    @Override
    public String snapshot(Path folder) throws IOException {
        List<String> written = new ArrayList<>();
        String time = LocalTime.now(ZoneId.systemDefault()).format(DateTimeFormatter.ofPattern("HHmmss"));
        for (ObjectName name : names()) {
            String file = folder.resolve(
                            "cistern-" + pid + "-" + shown(name).replaceAll("\\W", "_") + "-" + time + ".json")
                    .toAbsolutePath()
                    .toString();
            try {
                boolean known = Arrays.stream(server.getMBeanInfo(name).getOperations())
                        .anyMatch(operation -> operation.getName().equals(SNAPSHOT));
                if (!known) {
                    throw new UsageException("this program's device memory can't write snapshots");
                }
                server.invoke(name, SNAPSHOT, new Object[] {file}, new String[] {String.class.getName()});
            } catch (JMException e) {
                throw new UsageException("no snapshot: " + e.getMessage());
            }
            written.add(file);
        }
        return "written: " + String.join(", ", written);
    }

    @Override
    public void close() {
        try {
            connector.close();
        } catch (IOException ended) {
            // It closed with the process.
        }
    }
}
