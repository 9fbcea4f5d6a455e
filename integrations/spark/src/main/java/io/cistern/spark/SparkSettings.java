package io.cistern.spark;

import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.SettingProblems;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;
import org.jspecify.annotations.Nullable;
import scala.Tuple2;

/// Applies Cistern's settings from Spark's configuration: `spark.cistern.limit` is `cistern.limit`.
/// While applied, they are system properties of the process, where Cistern reads them; [#close]
/// restores the former values.
///
/// **Threads.** One thread at a time.
final class SparkSettings implements AutoCloseable {
    private static final String SPARK = "spark.";
    private static final String PREFIX = "spark.cistern.";

    private final Map<String, @Nullable String> former = new LinkedHashMap<>();

    private SparkSettings() {}

    /// Applies the settings in a configuration.
    ///
    /// @param defaults values for settings that neither Spark nor the process sets
    /// @throws ConfigurationException if an unknown setting is set; nothing is applied then
    static SparkSettings apply(SparkConf conf, Map<String, String> defaults) {
        SparkSettings applied = new SparkSettings();
        try {
            of(conf).forEach(applied::set);
            defaults.forEach(applied::setDefault);
            applied.requireKnown();
            return applied;
        } catch (RuntimeException refused) {
            applied.close();
            throw refused;
        }
    }

    /// Checks the settings in a configuration, with the code that applies them in executors.
    ///
    /// @throws ConfigurationException if one of them is invalid
    static void check(SparkConf conf) {
        try (SparkSettings applied = apply(conf, Map.of())) {
            List<Settings.Value> set = Settings.ofProcess().all().stream()
                    .filter(each -> applied.former.containsKey(each.key()))
                    .toList();
            set.forEach(Settings.Value::check);
            TrialMemory.open(set);
        } catch (IllegalSettingException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
        TaskLimit.check(conf);
        HostBudget.wanted(conf);
        FiguresReporter.intervalMillis(conf);
    }

    /// Returns Cistern's own settings from a configuration, by Cistern's keys.
    static Map<String, String> of(SparkConf conf) {
        Map<String, String> found = new LinkedHashMap<>();
        for (Tuple2<String, String> entry : conf.getAll()) {
            if (entry._1().startsWith(PREFIX) && !PluginSetting.isKey(entry._1())) {
                found.put(entry._1().substring(SPARK.length()), entry._2());
            }
        }
        return found;
    }

    private void set(String key, String value) {
        former.put(key, System.getProperty(key));
        System.setProperty(key, value);
    }

    private void setDefault(String key, String value) {
        boolean isSet = Settings.ofProcess().all().stream()
                .anyMatch(each -> each.setting().key().equals(key));
        if (!isSet) {
            set(key, value);
        }
    }

    private void requireKnown() {
        Settings settings = Settings.ofProcess();
        List<String> unknown = settings.unknown().stream()
                .filter(each -> !each.isVariable() && former.containsKey(each.key()))
                .map(Settings.Unknown::key)
                .toList();
        if (!unknown.isEmpty()) {
            throw new ConfigurationException(SettingProblems.of(settings).stream()
                    .filter(problem -> unknown.stream().anyMatch(key -> problem.contains("'" + key + "'")))
                    .collect(Collectors.joining("; ")));
        }
    }

    @Override
    public void close() {
        former.forEach((key, value) -> {
            if (value == null) {
                System.clearProperty(key);
            } else {
                System.setProperty(key, value);
            }
        });
        former.clear();
    }
}
