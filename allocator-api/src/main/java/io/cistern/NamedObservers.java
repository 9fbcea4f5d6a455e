package io.cistern;

import io.cistern.cuda.settings.Settings;
import io.cistern.internal.names.NearestName;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.TreeMap;
import java.util.stream.Stream;

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
            Map<String, ModuleSupport.Observer> found = found();
            for (String name : split(names.text())) {
                ModuleSupport.Observer observer = found.get(name);
                if (observer == null) {
                    LOGGER.log(Level.WARNING, names.source() + ": " + unknown(name, found));
                } else {
                    begin(memory, name, observer);
                }
            }
        } catch (RuntimeException | ServiceConfigurationError | LinkageError broken) {
            LOGGER.log(Level.WARNING, "observers can't be found for " + names.source(), broken);
        }
    }

    /// Returns a line for each name that is no observer's.
    ///
    /// @param names separated by commas
    static List<String> problems(String names) {
        List<String> problems = new ArrayList<>();
        Map<String, ModuleSupport.Observer> found = found();
        for (String name : split(names)) {
            if (!found.containsKey(name)) {
                problems.add(unknown(name, found));
            }
        }
        return problems;
    }

    private static Map<String, ModuleSupport.Observer> found() {
        Map<String, ModuleSupport.Observer> found = new TreeMap<>();
        ServiceLoader.load(ModuleSupport.Observer.class)
                .forEach(observer -> found.putIfAbsent(observer.name(), observer));
        return found;
    }

    private static List<String> split(String names) {
        return Stream.of(names.split(",", -1)).map(String::strip).toList();
    }

    private static String unknown(String name, Map<String, ModuleSupport.Observer> found) {
        return "there is no observer '" + name + "'; "
                + (found.isEmpty()
                        ? "none is found, those of Cistern are in cistern-observability"
                        : "known: " + NearestName.listed(name, found.keySet()));
    }

    private static void begin(DeviceMemory memory, String name, ModuleSupport.Observer observer) {
        try {
            observer.observe(memory);
        } catch (RuntimeException | LinkageError broken) {
            LOGGER.log(Level.WARNING, "observer '" + name + "' failed to begin", broken);
        }
    }
}
