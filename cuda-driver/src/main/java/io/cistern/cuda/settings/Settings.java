package io.cistern.cuda.settings;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// What is set from outside the program, and where. What code says comes before all of it; then the first of
/// these that speaks decides:
///
/// 1. a system property, `-Dcistern.allocator=async`
/// 2. an environment variable, `CISTERN_ALLOCATOR=async`
/// 3. the file that `cistern.config` (or `CISTERN_CONFIG`) names: lines `cistern.allocator=async`
///
/// So what is set for one device in a file gives way to what a property sets for all; of one origin, what is set
/// for a device comes first. A blank value counts as not set, since that is how a script takes a variable back.
///
/// Immutable: it is what was set when it was made. Written without lambdas, since it is among the first things that
/// run.
public final class Settings {
    private static final String PROPERTIES = "cistern.";
    private static final String VARIABLES = "CISTERN_";

    /// Properties of the programs around: tests, benchmarks.
    private static final List<String> OTHER_PROPERTIES =
            List.of("cistern.testkit.", "cistern.benchmark.", "cistern.docs.", "cistern.stress.");

    /// Variables of the programs around: the script, and hosts that start Java.
    private static final List<String> OTHER_VARIABLES =
            List.of("CISTERN_CLASSPATH", "CISTERN_HOME", "CISTERN_JAVA_HOME", "CISTERN_JAVA_OPTS");

    /// A value and where it was set.
    ///
    /// @param setting what it is for
    /// @param part the device or the name in its key; empty if that has none
    /// @param text the value
    /// @param source for people: `property cistern.allocator`, `environment variable CISTERN_ALLOCATOR`,
    ///     `cistern.allocator in /etc/cistern.properties`
    public record Value(Setting setting, String part, String text, String source) {
        /// The key as it is written as a property.
        public String key() {
            return setting.isFamily() ? setting.keyOf(part) : setting.key();
        }

        /// The value of a setting that is a number of bytes.
        ///
        /// @throws IllegalSettingException if it is none
        public long bytes() {
            try {
                return ByteSizes.parse(text);
            } catch (IllegalArgumentException e) {
                throw new IllegalSettingException(this, e.getMessage());
            }
        }
    }

    /// A key that was set and is none.
    ///
    /// @param key as it is written
    /// @param source for people
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

    /// The strongest first.
    private final List<Map<Id, Value>> values = List.of(fromProperties, fromVariables, fromFile);

    private final List<Unknown> unknown = new ArrayList<>();
    private final List<String> problems = new ArrayList<>();

    /// Reads what is set.
    ///
    /// @param properties the system properties
    /// @param variables the environment
    public Settings(Map<String, String> properties, Map<String, String> variables) {
        for (Map.Entry<String, String> one : properties.entrySet()) {
            String key = one.getKey();
            if (isMeantForCistern(key) && !startsWithOneOf(OTHER_PROPERTIES, key)) {
                add(fromProperties, key, one.getValue(), "property " + key);
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

    /// In any case of letters, and a property in the style of a variable or the other way round: what is almost a key
    /// is told, and not passed over.
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

    /// What is set for this process now.
    public static Settings ofProcess() {
        Map<String, String> properties = new TreeMap<>();
        for (String key : System.getProperties().stringPropertyNames()) {
            String text = System.getProperty(key);
            if (text != null) {
                properties.put(key, text);
            }
        }
        return new Settings(properties, System.getenv());
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
        if (!text.isBlank() && !isKnown) {
            unknown.add(new Unknown(name, source, true));
        }
    }

    /// @return whether there is such a key; a blank text is not put
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

    /// `CISTERN_DEFINE_MY_POOL` defines `my_pool`: in a name `_` is no dot.
    private static String keyOfVariable(String name) {
        String define = Setting.variable(Setting.DEFINE.keyOf(""));
        String lower = name.toLowerCase(Locale.ROOT);
        return name.startsWith(define)
                ? Setting.DEFINE.keyOf(lower.substring(define.length()))
                : lower.replace('_', '.');
    }

    /// What is set for a setting without a chosen part.
    public Optional<Value> get(Setting setting) {
        return Optional.ofNullable(value(new Id(setting, "")));
    }

    /// Whether a setting is `true`. A word that is neither is `false`, with a warning: what is set so is no reason to
    /// stop a program.
    public boolean isTrue(Setting setting) {
        Value set = value(new Id(setting, ""));
        if (set == null || set.text().equalsIgnoreCase("true")) {
            return set != null;
        }
        if (!set.text().equalsIgnoreCase("false")) {
            System.getLogger(Settings.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "{0} is ''{1}'', which is none of true, false; taken as false",
                            set.source(),
                            set.text());
        }
        return false;
    }

    /// What is set for a device: of the strongest origin that says anything about it or about all, what it says
    /// about it.
    ///
    /// @param ofDevice the setting for one device
    /// @param ofAll the setting for all
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

    /// Every value that holds, in the order of [Setting], then of device and name.
    public List<Value> all() {
        Map<Id, Value> holding = new TreeMap<>();
        for (Map<Id, Value> set : values.reversed()) {
            holding.putAll(set);
        }
        return List.copyOf(holding.values());
    }

    /// Keys that were set and are no settings.
    public List<Unknown> unknown() {
        return List.copyOf(unknown);
    }

    /// What is wrong with the file: that it can't be read, or that others can write to it; then nothing of it
    /// holds.
    public List<String> problems() {
        return List.copyOf(problems);
    }
}
