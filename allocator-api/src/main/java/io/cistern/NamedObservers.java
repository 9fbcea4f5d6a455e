package io.cistern;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.internal.names.NearestName;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;

/// Finds and starts the observers that the setting `cistern.observe` names. A diagnostic must not stop a
/// program, so problems are logged.
final class NamedObservers {
    /// The observer that `cistern.check=streams` starts.
    private static final String STREAMS = "streams";

    private static final Set<String> OF_OBSERVABILITY = Set.of("history", "jfr", "jmx", "nvtx", "snapshots");

    private static final System.Logger LOGGER = System.getLogger(ModuleSupport.Observer.class.getName());

    private final Map<String, ModuleSupport.Observer> chosen;

    private NamedObservers(Map<String, ModuleSupport.Observer> chosen) {
        this.chosen = chosen;
    }

    /// Finds the observers that the settings ask for.
    static NamedObservers of(Settings settings) {
        Map<String, ModuleSupport.Observer> chosen = new LinkedHashMap<>();
        settings.get(Setting.CHECK)
                .filter(level -> level.text().equalsIgnoreCase(STREAMS))
                .ifPresent(level -> choose(level, STREAMS, chosen));
        settings.get(Setting.OBSERVE).ifPresent(names -> choose(names, names.text(), chosen));
        return new NamedObservers(chosen);
    }

    private static void choose(Settings.Value asked, String names, Map<String, ModuleSupport.Observer> chosen) {
        try {
            Map<String, ModuleSupport.Observer> found = found();
            for (String name : split(names)) {
                ModuleSupport.Observer observer = found.get(name);
                if (observer == null) {
                    LOGGER.log(Level.WARNING, asked.source() + ": " + unknown(name, found));
                } else {
                    chosen.put(name, observer);
                }
            }
        } catch (RuntimeException | ServiceConfigurationError | LinkageError broken) {
            LOGGER.log(Level.WARNING, "can't load the observers of " + asked.source(), broken);
        }
    }

    /// Returns the driver, wrapped by each observer in turn.
    CudaDriver around(CudaDriver driver) {
        CudaDriver[] outermost = {driver};
        chosen.forEach((name, observer) -> tryTo(name, () -> outermost[0] = observer.around(outermost[0])));
        return outermost[0];
    }

    /// Starts the observers on a newly opened device memory.
    void begin(DeviceMemory memory) {
        chosen.forEach((name, observer) -> tryTo(name, () -> observer.observe(memory)));
    }

    private static void tryTo(String name, Runnable begin) {
        try {
            begin.run();
        } catch (IllegalSettingException wrong) {
            throw wrong; // else the check would be silently off
        } catch (RuntimeException | LinkageError broken) {
            LOGGER.log(Level.WARNING, "observer '" + name + "' failed to start", broken);
        }
    }

    /// Returns a line for each name that is not an observer's.
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
        if (name.equals(STREAMS)) {
            return "the stream check is in cistern-stream-hazards, which is not on the class path";
        }
        if (OF_OBSERVABILITY.contains(name)) {
            return "observer '" + name + "' is in cistern-observability, which is not on the class path";
        }
        Set<String> known = new TreeSet<>(OF_OBSERVABILITY);
        known.add(STREAMS);
        known.addAll(found.keySet());
        return "there is no observer '" + name + "'; known, nearest first: " + NearestName.listed(name, known);
    }
}
