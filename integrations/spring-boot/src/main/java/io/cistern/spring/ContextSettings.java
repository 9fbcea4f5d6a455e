package io.cistern.spring;

import io.cistern.ModuleSupport;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.SettingProblems;
import io.cistern.spi.catalog.Catalog;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Supplier;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.core.env.ConfigurableEnvironment;

/// Cistern's settings among the properties of a Spring application, in Spring's order. They are system properties until
/// the application's context closes. Of several contexts that are open, the last one's hold.
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

    /// System properties that settings stand in for, such as those of the command line.
    private final Map<String, String> replaced = new TreeMap<>();

    /// Where each of them comes from, such as a line of application.properties.
    private final Map<String, String> sources = new HashMap<>();

    private final List<String> wrong = new ArrayList<>();

    private ContextSettings(ConfigurableEnvironment environment) {
        Binder.get(environment)
                .bind("cistern", Bindable.mapOf(String.class, String.class))
                .orElseGet(Map::of)
                .keySet()
                .forEach(key -> find(environment, PREFIX + key).ifPresent(found -> add(environment, key, found)));
    }

    /// Finds the first value that is not blank: a blank one counts as not set.
    private static Optional<ConfigurationProperty> find(ConfigurableEnvironment environment, String key) {
        ConfigurationPropertyName name = ConfigurationPropertyName.adapt(key, '.');
        return StreamSupport.stream(
                        ConfigurationPropertySources.get(environment).spliterator(), false)
                .map(source -> source.getConfigurationProperty(name))
                .filter(Objects::nonNull)
                .filter(found -> !value(environment, found).isBlank())
                .findFirst();
    }

    private static String value(ConfigurableEnvironment environment, ConfigurationProperty found) {
        return environment.resolvePlaceholders(String.valueOf(found.getValue()));
    }

    private void add(ConfigurableEnvironment environment, String shortKey, ConfigurationProperty found) {
        String key = PREFIX + shortKey;
        String value = value(environment, found);
        if (!shortKey.startsWith(OURS)) {
            if (!value.equals(seenByCistern(key))) {
                settings.put(key, value);
                sources.put(key, source(key, found));
            }
        } else if (!plain(key).equals(OUR_ONLY_ONE)) { // other keys are checked where Cistern reads them
            wrong.add(IllegalSettingException.line(
                    source(key, found), "there is no setting '" + key + "'; known: " + SLOW_ALLOCATIONS));
        } else if (!isDuration(value)) {
            wrong.add(
                    IllegalSettingException.line(source(key, found), "'" + value + "' is not a duration, such as 1ms"));
        }
    }

    private static boolean isDuration(String value) {
        try {
            return !DurationStyle.detectAndParse(value).isNegative();
        } catch (IllegalArgumentException | ArithmeticException e) {
            return false;
        }
    }

    /// `cistern.limit from class path resource [application.properties] - 3:15`, or
    /// `cistern.limit from property source "commandLineArgs"`.
    private static String source(String key, ConfigurationProperty found) {
        String origin = String.valueOf(found.getOrigin());
        int source = origin.indexOf(" from property source ");
        return key + (source < 0 ? " from " + origin : origin.substring(source));
    }

    /// Returns a key without what Spring allows to vary: `slowAllocations`, `slow-allocations`, `SLOW_ALLOCATIONS`.
    private static String plain(String key) {
        return key.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
    }

    /// Returns the value that Cistern finds by itself. Where Spring has the same, messages can name its source.
    private static @Nullable String seenByCistern(String key) {
        String property = System.getProperty(key);
        return property != null
                ? property
                : System.getenv(key.toUpperCase(Locale.ROOT).replace('.', '_').replace('-', '_'));
    }

    /// Makes the settings system properties, instead of those of another context.
    ///
    /// @param catalog finds the allocators; only called if a setting is wrong
    static ContextSettings open(ConfigurableEnvironment environment, Supplier<Catalog> catalog) {
        synchronized (ContextSettings.class) {
            withdraw(); // before this context's properties are read, in which system properties win
            ContextSettings opened;
            try {
                opened = new ContextSettings(environment);
                OPEN.add(opened);
            } finally {
                publish();
            }
            return opened.checked(catalog);
        }
    }

    private ContextSettings checked(Supplier<Catalog> catalog) {
        if (wrong.isEmpty()) {
            return this;
        }
        try {
            ConfigurationException first = new ConfigurationException(String.join("\n", wrong));
            throw new ConfigurationException(
                    SettingProblems.all(
                            Settings.ofProcess(), first, spec -> ModuleSupport.problemsOfSpec(spec, catalog.get())),
                    first);
        } finally {
            close();
        }
    }

    private static void withdraw() {
        if (!OPEN.isEmpty()) {
            OPEN.getLast().settings.keySet().forEach(OPEN.getLast()::restore);
        }
    }

    private static void publish() {
        if (!OPEN.isEmpty()) {
            OPEN.getLast().settings.forEach(OPEN.getLast()::replace);
        }
    }

    private void replace(String key, String value) {
        Settings.sourceOfProperty(key, sources.get(key));
        String before = System.setProperty(key, value);
        if (before != null) {
            replaced.put(key, before);
        }
    }

    private void restore(String key) {
        Settings.sourceOfProperty(key, null);
        String before = replaced.remove(key);
        if (before == null) {
            System.clearProperty(key);
        } else {
            System.setProperty(key, before);
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
