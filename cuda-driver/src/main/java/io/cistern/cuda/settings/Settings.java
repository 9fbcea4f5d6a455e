package io.cistern.cuda.settings;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// The settings that were set outside the program, and their sources. Code that sets an option overrides all of
/// them. Otherwise the first of these sources that has a value decides:
///
/// 1. a system property, `-Dcistern.allocator=async`
/// 2. an environment variable, `CISTERN_ALLOCATOR=async`
/// 3. the file that `cistern.config` (or `CISTERN_CONFIG`) names: lines `cistern.allocator=async`
///
/// So a property for all devices overrides a file's value for one device; within one source, the value for
/// one device takes precedence. A blank value counts as not set, because scripts unset a variable in this
/// way.
///
/// Immutable: a snapshot of the settings at the time of its creation. The code uses no lambdas, because it is
/// among the first code that a program runs.
public final class Settings {
    private static final String PROPERTIES = "cistern.";
    private static final String VARIABLES = "CISTERN_";

    /// Properties of surrounding programs: Spring, tests, benchmarks.
    private static final List<String> OTHER_PROPERTIES =
            List.of("cistern.metrics.", "cistern.testkit.", "cistern.benchmark.", "cistern.docs.", "cistern.stress.");

    /// Variables of surrounding programs: Spring, the script, and hosts that start Java.
    private static final List<String> OTHER_VARIABLES =
            List.of("CISTERN_METRICS_", "CISTERN_CLASSPATH", "CISTERN_HOME", "CISTERN_JAVA_HOME", "CISTERN_JAVA_OPTS");

    /// Variables that Kubernetes sets in every pod for a Service named `cistern` or `cistern-…`.
    private static final String OF_KUBERNETES = VARIABLES
            + "([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?"
            + "|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)";

    /// By key, the sources of the system properties that a surrounding program sets.
    private static final Map<String, String> SOURCES = new ConcurrentHashMap<>();

    /// A value and where it was set.
    ///
    /// @param setting the setting
    /// @param part the device or the name in its key; empty if the key has no such part
    /// @param text the value
    /// @param source its human-readable source: `property cistern.allocator`,
    ///     `environment variable CISTERN_ALLOCATOR`, `cistern.allocator in /etc/cistern.properties`
    public record Value(Setting setting, String part, String text, String source) {
        /// Returns the key as it is written in a property.
        public String key() {
            return setting.isFamily() ? setting.keyOf(part) : setting.key();
        }

        /// Returns the value as a number of bytes from 1 to the given one.
        ///
        /// @throws IllegalSettingException if it is not such a number
        public long bytes(long most) {
            return inRange(parsed(null), most);
        }

        /// Returns the value as a number of bytes of a device, at least 1; it may be a share.
        ///
        /// @param deviceBytes returns the device's memory, in bytes
        /// @throws IllegalSettingException if it is not such a number
        public long bytes(LongSupplier deviceBytes) {
            return inRange(parsed(deviceBytes), Long.MAX_VALUE);
        }

        /// Returns the value of a limit, like [#bytes(LongSupplier)]; [Long#MAX_VALUE] for `none`.
        ///
        /// @throws IllegalSettingException if it is neither
        public long limit(LongSupplier deviceBytes) {
            return text.equalsIgnoreCase("none") ? Long.MAX_VALUE : bytes(deviceBytes);
        }

        private long parsed(@Nullable LongSupplier deviceBytes) {
            try {
                return deviceBytes == null ? ByteSizes.parse(text) : ByteSizes.parse(text, deviceBytes);
            } catch (IllegalArgumentException e) {
                throw new IllegalSettingException(this, e.getMessage());
            }
        }

        private long inRange(long bytes, long most) {
            if (bytes < 1 || bytes > most) {
                throw illegal();
            }
            return bytes;
        }

        /// Checks the value as the code that applies it does, as far as possible without a device and without
        /// opening a file.
        ///
        /// @throws IllegalSettingException if that code would refuse it
        public void check() {
            switch (setting) {
                case LIMIT, DEVICE_LIMIT -> limit(() -> Long.MAX_VALUE); // a device that is not known yet
                case LEAKS, CHECK, HAZARDS, SCOPES_REPORT, COPIES_REPORT, COPIES_DIRECT -> word();
                case SIMULATED_DEVICES -> number(Setting.MAX_SIMULATED_DEVICES);
                case SIMULATED_CAPACITY -> bytes(Setting.MAX_SIMULATED_BYTES);
                default -> {} // names, files and specs: checked where they are opened
            }
        }

        /// Returns the value as a whole number from 1 to the given one.
        ///
        /// @throws IllegalSettingException if it is not such a number
        public int number(int most) {
            if (!text.matches("[1-9][0-9]{0,8}") || Integer.parseInt(text) > most) {
                throw illegal();
            }
            return Integer.parseInt(text);
        }

        private IllegalSettingException illegal() {
            return new IllegalSettingException(this, "'" + text + "' is not " + setting.legal());
        }

        /// Returns the legal word that the value matches, in any letter case. Only for a setting whose
        /// legal values are a list of words.
        ///
        /// @throws IllegalSettingException if it is not one of them
        public String word() {
            String words = setting.legal().replace("`", "");
            for (String word : words.split(", ", -1)) {
                if (word.equalsIgnoreCase(text) || (word.equals("off") && text.equals("false"))) { // YAML's off
                    return word;
                }
            }
            throw new IllegalSettingException(this, "'" + text + "' is not one of " + words);
        }
    }

    /// A key that was set but does not exist.
    ///
    /// @param key the key as it was written
    /// @param source its human-readable source
    /// @param isVariable whether it is an environment variable
    public record Unknown(String key, String source, boolean isVariable) {}

    private record Id(Setting setting, String part) implements Comparable<Id> {
        @Override
        public int compareTo(Id other) {
            int order = setting.compareTo(other.setting);
            return order != 0 ? order : part.compareTo(other.part);
        }
    }

    private final Map<Id, Value> fromProperties = new TreeMap<>();
    private final Map<Id, Value> fromVariables = new TreeMap<>();
    private final Map<Id, Value> fromFile = new TreeMap<>();

    /// The source with the highest precedence comes first.
    private final List<Map<Id, Value>> values = List.of(fromProperties, fromVariables, fromFile);

    private final List<Unknown> unknown = new ArrayList<>();
    private final List<String> problems = new ArrayList<>();

    /// Takes a snapshot of the settings.
    ///
    /// @param properties the system properties
    /// @param variables the environment
    public Settings(Map<String, String> properties, Map<String, String> variables) {
        this(properties, variables, Map.of());
    }

    private Settings(Map<String, String> properties, Map<String, String> variables, Map<String, String> sources) {
        for (Map.Entry<String, String> one : properties.entrySet()) {
            String key = one.getKey();
            if (isMeantForCistern(key) && !startsWithOneOf(OTHER_PROPERTIES, key)) {
                add(fromProperties, key, one.getValue(), sources.getOrDefault(key, "property " + key));
            }
        }
        for (Map.Entry<String, String> one : variables.entrySet()) {
            String name = one.getKey();
            if (isMeantForCistern(name) && !startsWithOneOf(OTHER_VARIABLES, name)) {
                addVariable(name, one.getValue(), "environment variable " + name);
            }
        }
        Value config = value(new Id(Setting.CONFIG, ""));
        if (config != null) {
            readFile(config);
        }
    }

    /// Accepts any letter case, a property written like a variable, and the reverse, so that a key that is almost
    /// right is reported, not ignored.
    private static boolean isMeantForCistern(String key) {
        return startsWith(PROPERTIES, key) || startsWith(VARIABLES, key);
    }

    private static boolean startsWith(String prefix, String text) {
        return text.regionMatches(true, 0, prefix, 0, prefix.length());
    }

    private static boolean startsWithOneOf(List<String> prefixes, String text) {
        for (String prefix : prefixes) {
            if (text.startsWith(prefix)) {
                return true;
            }
        }
        return false;
    }

    /// Returns a snapshot of the settings of this process.
    public static Settings ofProcess() {
        Map<String, String> properties = new TreeMap<>();
        for (String key : System.getProperties().stringPropertyNames()) {
            String text = System.getProperty(key);
            if (text != null) {
                properties.put(key, text);
            }
        }
        return new Settings(properties, System.getenv(), SOURCES);
    }

    /// Names the source of a system property that a surrounding program sets for Cistern from its own
    /// configuration, so that messages can name it.
    ///
    /// @param source the human-readable source; null if the program removes the property
    public static void sourceOfProperty(String key, @Nullable String source) {
        if (source == null) {
            SOURCES.remove(key);
        } else {
            SOURCES.put(key, source);
        }
    }

    private void readFile(Value config) {
        SettingsFile file = SettingsFile.read(config);
        problems.addAll(file.problems());
        for (Map.Entry<String, String> one : file.entries().entrySet()) {
            String key = one.getKey();
            if (key.equals(Setting.CONFIG.key())) {
                problems.add(config.text() + ": " + key + " can't be set in the file that it names");
            } else {
                add(fromFile, key, one.getValue(), key + " in " + config.text());
            }
        }
    }

    private void add(Map<Id, Value> to, String key, String text, String source) {
        if (!text.isBlank() && !isPut(to, key, text, source)) {
            unknown.add(new Unknown(key, source, false));
        }
    }

    private void addVariable(String name, String text, String source) {
        boolean isKnown = name.startsWith(VARIABLES) && isPut(fromVariables, keyOfVariable(name), text, source);
        if (!text.isBlank() && !isKnown && !name.matches(OF_KUBERNETES)) {
            unknown.add(new Unknown(name, source, true));
        }
    }

    /// @return whether such a key exists; a blank text is not stored
    private static boolean isPut(Map<Id, Value> to, String key, String text, String source) {
        for (Setting setting : Setting.values()) {
            String part = setting.partOf(key);
            if (part != null) {
                if (!text.isBlank()) {
                    to.put(new Id(setting, part), new Value(setting, part, text.strip(), source));
                }
                return true;
            }
        }
        return false;
    }

    /// `CISTERN_DEFINE_MY_POOL` defines `my_pool`: in the name, `_` does not stand for a dot.
    private static String keyOfVariable(String name) {
        String define = Setting.variable(Setting.DEFINE.keyOf(""));
        String lower = name.toLowerCase(Locale.ROOT);
        return name.startsWith(define)
                ? Setting.DEFINE.keyOf(lower.substring(define.length()))
                : lower.replace('_', '.');
    }

    /// Returns the value of a setting without a chosen part; empty if it is not set.
    public Optional<Value> get(Setting setting) {
        return Optional.ofNullable(value(new Id(setting, "")));
    }

    /// Returns whether a setting is `true`, in any letter case. [Value#check] refuses other words than `true` and
    /// `false`.
    public boolean isTrue(Setting setting) {
        Value set = value(new Id(setting, ""));
        return set != null && set.text().equalsIgnoreCase("true");
    }

    /// Returns the value for a device. The source with the highest precedence that has a value for this device
    /// or for all decides; within that source, the value for this device takes precedence.
    ///
    /// @param ofDevice the setting for one device
    /// @param ofAll the setting for all devices
    /// @param device the device's ordinal
    public Optional<Value> get(Setting ofDevice, Setting ofAll, int device) {
        Id one = new Id(ofDevice, Integer.toString(device));
        Id all = new Id(ofAll, "");
        for (Map<Id, Value> set : values) {
            Value found = set.containsKey(one) ? set.get(one) : set.get(all);
            if (found != null) {
                return Optional.of(found);
            }
        }
        return Optional.empty();
    }

    private @Nullable Value value(Id id) {
        for (Map<Id, Value> set : values) {
            Value found = set.get(id);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /// Returns every effective value, in the order of [Setting], then of device and name.
    public List<Value> all() {
        Map<Id, Value> holding = new TreeMap<>();
        for (Map<Id, Value> set : values.reversed()) {
            holding.putAll(set);
        }
        return List.copyOf(holding.values());
    }

    /// Returns the text of every effective value, by its key.
    public Map<String, String> byKey() {
        Map<String, String> texts = new TreeMap<>();
        for (Value value : all()) {
            texts.put(value.key(), value.text());
        }
        return texts;
    }

    /// Returns the keys that were set but do not exist.
    public List<Unknown> unknown() {
        return List.copyOf(unknown);
    }

    /// Returns what is wrong with the file of settings. If it can't be read, or others can write to it, none of
    /// its values apply. A key that is set twice is also a problem.
    public List<String> problems() {
        return List.copyOf(problems);
    }
}
