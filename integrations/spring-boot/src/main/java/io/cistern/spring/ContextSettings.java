package io.cistern.spring;

import io.cistern.ModuleSupport;
import io.cistern.errors.ConfigurationException;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.ConfigurableEnvironment;

/// Cistern's settings among the properties of a Spring application. They are system properties until the
/// application's context closes. Of several contexts that are open, the last one's hold.
///
/// **Threads.** Any.
final class ContextSettings implements AutoCloseable {
    static final String SLOW_ALLOCATIONS = "cistern.metrics.slow-allocations";

    private static final String PREFIX = "cistern.";
    private static final String OURS = "metrics.";
    private static final String OUR_ONLY_ONE = plain(SLOW_ALLOCATIONS);

    /// Those of open contexts, the last one's last; guarded by the class, like the field below.
    private static final List<ContextSettings> OPEN = new ArrayList<>();

    /// Those that the process's own device memory was opened with; null if no context opened it.
    private static @Nullable Map<String, String> ofProcess;

    private final Map<String, String> settings = new TreeMap<>();

    private ContextSettings(ConfigurableEnvironment environment) {
        Binder.get(environment)
                .bind("cistern", Bindable.mapOf(String.class, String.class))
                .orElseGet(Map::of)
                .forEach((key, value) -> {
                    if (key.startsWith(OURS)) {
                        requireKnown(PREFIX + key);
                    } else if (!isSet(PREFIX + key)) {
                        settings.put(PREFIX + key, value);
                    }
                });
    }

    /// Other keys are checked where Cistern reads them.
    private static void requireKnown(String key) {
        if (!plain(key).equals(OUR_ONLY_ONE)) {
            throw new ConfigurationException("there is no setting '" + key + "'; known: " + SLOW_ALLOCATIONS);
        }
    }

    /// Returns a key without what Spring allows to vary: `slowAllocations`, `slow-allocations`, `SLOW_ALLOCATIONS`.
    private static String plain(String key) {
        return key.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
    }

    /// Existing properties and environment variables win, as in Spring's order.
    private static boolean isSet(String key) {
        return System.getProperty(key) != null
                || System.getenv(key.toUpperCase(Locale.ROOT).replace('.', '_').replace('-', '_')) != null;
    }

    /// Makes the settings system properties, instead of those of another context.
    static ContextSettings open(ConfigurableEnvironment environment) {
        synchronized (ContextSettings.class) {
            withdraw(); // before this context's properties are read, in which system properties win
            try {
                ContextSettings opened = new ContextSettings(environment);
                OPEN.add(opened);
                return opened;
            } finally {
                publish();
            }
        }
    }

    private static void withdraw() {
        if (!OPEN.isEmpty()) {
            OPEN.getLast().settings.keySet().forEach(System::clearProperty);
        }
    }

    private static void publish() {
        if (!OPEN.isEmpty()) {
            OPEN.getLast().settings.forEach(System::setProperty);
        }
    }

    /// Warns if the process's own device memory is already open, so that these settings come too late for it.
    void applyToProcess() {
        synchronized (ContextSettings.class) {
            if (ModuleSupport.systemIfOpen().isEmpty()) {
                ofProcess = settings;
            } else if (!settings.equals(ofProcess) && !settings.isEmpty()) {
                System.getLogger(CisternAutoConfiguration.class.getName())
                        .log(
                                Level.WARNING,
                                "the process's own device memory was opened before, with other settings; these have no"
                                        + " effect on it: " + settings
                                        + ". A CudaDriver bean gives the application device memory of its own");
            }
        }
    }

    @Override
    public void close() {
        synchronized (ContextSettings.class) {
            withdraw();
            OPEN.remove(this);
            publish();
        }
    }
}
