package io.cistern.spring;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import io.cistern.cuda.CudaDrivers;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.SettingProblems;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.core.env.ConfigurableEnvironment;

/// Cistern's settings among the properties of a Spring application, in Spring's order. They are system properties until
/// the application's context closes. If several contexts are open, the settings of the one that last
/// created device memory are in force.
///
/// **Threads.** Any.
final class ContextSettings implements AutoCloseable {
    static final String SLOW_ALLOCATIONS = "cistern.metrics.slow-allocations";

    private static final String PREFIX = "cistern.";
    private static final ConfigurationPropertyName ALL = ConfigurationPropertyName.of("cistern");
    private static final String OURS = "metrics.";
    private static final String OUR_ONLY_ONE = plain(SLOW_ALLOCATIONS);

    /// Keys that end with a user-defined name.
    private static final String NAMES = "define.";

    private static final Pattern ELEMENT = Pattern.compile("\\.\\d+$");

    /// The settings of open contexts, those in force last. Guarded by the class.
    private static final List<ContextSettings> OPEN = new ArrayList<>();

    private final Map<String, String> settings = new TreeMap<>();

    /// System properties that settings replace while they are published, such as settings of the command line.
    private final Map<String, String> replaced = new TreeMap<>();

    /// The source of each setting, such as a line of application.properties.
    private final Map<String, String> sources = new HashMap<>();

    private final Set<String> wrong = new LinkedHashSet<>();

    private @Nullable Duration slowAllocations;

    /// A value in one source of properties.
    ///
    /// @param text the value, without placeholders; the elements of a list are separated by commas
    private record Found(String text, ConfigurationProperty property) {}

    private ContextSettings(ConfigurableEnvironment environment) {
        keys(environment).forEach(key -> addAs(environment, standard(key), key));
        find(environment, ALL)
                .ifPresent(found -> wrong.add(IllegalSettingException.line(
                        source(ALL.toString(), found.property()),
                        "'" + found.text() + "' belongs to no setting; name one, such as cistern.limit")));
    }

    /// Returns the keys as they are written, without the prefix.
    private static Set<String> keys(ConfigurableEnvironment environment) {
        Set<String> keys = new LinkedHashSet<>();
        for (ConfigurationPropertySource source : ConfigurationPropertySources.get(environment)) {
            if (source instanceof IterableConfigurationPropertySource listed) {
                listed.stream()
                        .filter(ALL::isAncestorOf)
                        .map(name -> IntStream.range(1, name.getNumberOfElements())
                                .mapToObj(at -> name.getElement(at, Form.ORIGINAL))
                                .collect(Collectors.joining(".")))
                        .forEach(keys::add);
            }
        }
        return keys;
    }

    /// Adds a setting under its standard key, or as it is written so that it is refused.
    private void addAs(ConfigurableEnvironment environment, String standard, String written) {
        find(environment, name(standard))
                .ifPresentOrElse(
                        found -> add(standard, found),
                        () -> find(environment, name(written)).ifPresent(found -> add(written, found)));
    }

    private static ConfigurationPropertyName name(String key) {
        return ConfigurationPropertyName.adapt(PREFIX + key, '.');
    }

    /// Returns the key of a setting that Spring found under a relaxed name, or as an element of a list: `Leaks`,
    /// `metrics.slowAllocations`, `observe.0`.
    private static String standard(String key) {
        if (plain(PREFIX + key).equals(OUR_ONLY_ONE)) {
            return SLOW_ALLOCATIONS.substring(PREFIX.length());
        }
        return key.startsWith(NAMES)
                ? key
                : ELEMENT.matcher(key.toLowerCase(Locale.ROOT)).replaceFirst("");
    }

    /// Finds the first value that is not blank: a blank one counts as not set.
    private static Optional<Found> find(ConfigurableEnvironment environment, ConfigurationPropertyName name) {
        return StreamSupport.stream(
                        ConfigurationPropertySources.get(environment).spliterator(), false)
                .map(source -> values(source, name))
                .filter(values -> !values.isEmpty())
                .map(values -> new Found(text(environment, values), values.getFirst()))
                .filter(found -> !found.text().isBlank())
                .findFirst();
    }

    /// Returns a value of one source, or the elements of a list.
    private static List<ConfigurationProperty> values(
            ConfigurationPropertySource source, ConfigurationPropertyName name) {
        ConfigurationProperty single = source.getConfigurationProperty(name);
        return single != null
                ? List.of(single)
                : Stream.iterate(0, index -> index + 1)
                        .map(index -> source.getConfigurationProperty(name.append("[" + index + "]")))
                        .takeWhile(Objects::nonNull)
                        .toList();
    }

    private static String text(ConfigurableEnvironment environment, List<ConfigurationProperty> values) {
        return values.stream()
                .map(value -> environment.resolvePlaceholders(String.valueOf(value.getValue())))
                .collect(Collectors.joining(","));
    }

    private void add(String shortKey, Found found) {
        String key = PREFIX + shortKey;
        String value = found.text();
        String source = source(key, found.property());
        if (!shortKey.startsWith(OURS)) {
            if (!value.equals(seenByCistern(key))) {
                settings.put(key, value);
                sources.put(key, source);
            }
        } else if (!plain(key).equals(OUR_ONLY_ONE)) { // other keys are checked where Cistern reads them
            wrong.add(IllegalSettingException.line(
                    source, "there is no setting '" + key + "'; known: " + SLOW_ALLOCATIONS));
        } else {
            slowAllocations = duration(value);
            if (slowAllocations == null) {
                wrong.add(IllegalSettingException.line(
                        source(SLOW_ALLOCATIONS, found.property()),
                        "'" + value + "' is not a duration of 0 or more, such as 1ms"));
            }
        }
    }

    private static @Nullable Duration duration(String value) {
        try {
            Duration parsed = DurationStyle.detectAndParse(value);
            return parsed.isNegative() ? null : parsed;
        } catch (IllegalArgumentException | ArithmeticException e) {
            return null;
        }
    }

    /// Returns the minimum duration of a slow allocation; null if they are not counted.
    @Nullable
    Duration slowAllocations() {
        return slowAllocations;
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

    /// Returns the value that Cistern itself reads. If Spring has the same value, messages can name its
    /// source.
    private static @Nullable String seenByCistern(String key) {
        String property = System.getProperty(key);
        return property != null
                ? property
                : System.getenv(key.toUpperCase(Locale.ROOT).replace('.', '_').replace('-', '_'));
    }

    /// Makes the settings system properties, instead of those of another context.
    ///
    /// @param opens whether the context will open a driver, unless the process's own device memory is open already
    /// @param ofSpec returns what is wrong with the spec of an allocator
    /// @throws ConfigurationException if a setting is wrong; the message names all that are
    static ContextSettings open(
            ConfigurableEnvironment environment, boolean opens, Function<String, List<String>> ofSpec) {
        synchronized (ContextSettings.class) {
            withdraw(); // before this context's properties are read, in which system properties win
            ContextSettings opened;
            try {
                opened = new ContextSettings(environment);
                OPEN.add(opened);
            } finally {
                publish();
            }
            boolean isRight = false;
            try {
                opened.check(opens && ModuleSupport.systemIfOpen().isEmpty(), ofSpec);
                isRight = true;
            } finally {
                if (!isRight) {
                    opened.close();
                }
            }
            return opened;
        }
    }

    /// Checks all settings: even one that has no effect may be invalid.
    private void check(boolean opens, Function<String, List<String>> ofSpec) {
        Settings settings = Settings.ofProcess();
        Set<String> problems = new LinkedHashSet<>(wrong);
        SettingProblems.all(settings, null, ofSpec).lines().forEach(problems::add);
        RuntimeException ofDriver =
                !problems.isEmpty() || namesNoDriver(settings) ? problemOfDriver(opens) : null; // which loads libraries
        if (ofDriver != null) {
            problems.add(String.valueOf(ofDriver.getMessage()));
        }
        if (!problems.isEmpty()) {
            String all = String.join("\n", problems);
            throw ofDriver == null ? new ConfigurationException(all) : new ConfigurationException(all, ofDriver);
        }
    }

    private static boolean namesNoDriver(Settings settings) {
        String name = settings.get(Setting.DRIVER).map(Settings.Value::text).orElse("auto");
        return !name.equals("auto")
                && CudaDrivers.providers().stream()
                        .noneMatch(provider -> provider.name().equals(name));
    }

    private static @Nullable RuntimeException problemOfDriver(boolean opens) {
        try {
            CudaDrivers.choose();
            return null;
        } catch (IllegalSettingException e) {
            return e;
        } catch (IllegalStateException e) {
            return opens ? e : null;
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

    /// Makes these settings system properties again, instead of those of another context.
    void putInForce() {
        synchronized (ContextSettings.class) {
            if (OPEN.contains(this) && OPEN.getLast() != this) {
                withdraw();
                OPEN.remove(this);
                OPEN.add(this);
                publish();
            }
        }
    }

    /// Runs code while these settings are in force. Until it returns, other contexts can't put theirs in
    /// force.
    <T> T inForce(Supplier<T> code) {
        synchronized (ContextSettings.class) {
            putInForce();
            return code.get();
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

    /// Warns of the settings that a device memory ignores, since it was opened with others.
    ///
    /// @param name the name of its bean
    void compareWith(DeviceMemory memory, String name) {
        Map<String, String> then = memory.moduleSupport().settings();
        Map<String, String> now = inForce(() -> Settings.ofProcess().byKey());
        Set<String> keys = new TreeSet<>(then.keySet());
        keys.addAll(now.keySet());
        String others = keys.stream()
                .filter(key -> !Objects.equals(then.get(key), now.get(key)))
                .map(key ->
                        key + " is " + then.getOrDefault(key, "not set") + ", here " + now.getOrDefault(key, "not set"))
                .collect(Collectors.joining("; "));
        if (!others.isEmpty()) {
            boolean isOfProcess = ModuleSupport.systemIfOpen().equals(Optional.of(memory));
            System.getLogger(CisternAutoConfiguration.class.getName())
                    .log(
                            Level.WARNING,
                            (isOfProcess
                                            ? "the process's own device memory"
                                            : "the device memory of bean '" + name + "'")
                                    + " was opened before, with other settings, and keeps them: " + others
                                    + (isOfProcess
                                            ? ". A CudaDriver bean gives the application device memory of its own"
                                            : ""));
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
