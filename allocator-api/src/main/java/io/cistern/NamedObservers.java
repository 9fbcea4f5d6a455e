package io.cistern;

import io.cistern.cuda.settings.Settings;
import io.cistern.internal.names.NearestName;
import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.TreeMap;

/// Finds and starts the observers that the setting `cistern.observe` names. A diagnostic must not stop a
/// program, so problems are logged.
final class NamedObservers {
    private static final System.Logger LOGGER = System.getLogger(ModuleSupport.Observer.class.getName());

    private NamedObservers() {}

    /// Lets the named observers observe a device memory that was opened just now.
    ///
    /// @param names separated by commas
    static void begin(DeviceMemory memory, Settings.Value names) {
        try {
            Map<String, ModuleSupport.Observer> found = new TreeMap<>();
            ServiceLoader.load(ModuleSupport.Observer.class)
                    .forEach(observer -> found.putIfAbsent(observer.name(), observer));
            for (String name : names.text().split(",", -1)) {
                begin(memory, name.strip(), found, names.source());
            }
        } catch (RuntimeException | ServiceConfigurationError | LinkageError broken) {
            LOGGER.log(Level.WARNING, "observers can't be found for " + names.source(), broken);
        }
    }

    private static void begin(
            DeviceMemory memory, String name, Map<String, ModuleSupport.Observer> found, String source) {
        ModuleSupport.Observer observer = found.get(name);
        if (observer == null) {
            LOGGER.log(
                    Level.WARNING,
                    source + ": there is no observer '" + name + "'; "
                            + (found.isEmpty()
                                    ? "none is found, those of Cistern are in cistern-observability"
                                    : "known: " + NearestName.listed(name, found.keySet())));
            return;
        }
        try {
            observer.observe(memory);
        } catch (RuntimeException | LinkageError broken) {
            LOGGER.log(Level.WARNING, "observer '" + name + "' failed to begin", broken);
        }
    }
}
