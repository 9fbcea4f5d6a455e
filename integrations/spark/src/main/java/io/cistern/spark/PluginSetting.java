package io.cistern.spark;

import java.util.Arrays;
import java.util.Optional;
import org.apache.spark.SparkConf;

/// Lists the settings of Cistern that exist only in Spark. `docs/spark.md` has this list.
public enum PluginSetting {
    /// Limits the device memory of one task.
    TASK_LIMIT(
            "spark.cistern.task.limit",
            "`share`, `none`, or a number of bytes, as `2g`",
            "`share` where `spark.task.resource.gpu.amount` is less than 1, else `none`",
            "the most bytes that a task requests at once; `share` is that amount times the device's limit or memory"),
    /// Limits the pinned host memory.
    PINNED(
            "spark.cistern.pinned",
            "a number of bytes, as `512m`",
            "half of the executor's memory overhead; of `spark.memory.offHeap.size` where that is in use",
            "the most pinned host memory: three quarters for spilled buffers, the rest for copies of rows"),
    /// Sets how often executors report figures.
    FIGURES_INTERVAL(
            "spark.cistern.figures.interval",
            "a time of at least `100ms`",
            "`10s`",
            "how often an executor sends its figures to the driver");

    private final String key;
    private final String legal;
    private final String otherwise;
    private final String meaning;

    PluginSetting(String key, String legal, String otherwise, String meaning) {
        this.key = key;
        this.legal = legal;
        this.otherwise = otherwise;
        this.meaning = meaning;
    }

    /// Returns the key in Spark's configuration.
    public String key() {
        return key;
    }

    /// Returns the legal values, for people.
    public String legal() {
        return legal;
    }

    /// Returns the default, for people.
    public String otherwise() {
        return otherwise;
    }

    /// Returns the meaning, for people.
    public String meaning() {
        return meaning;
    }

    /// Returns the value; empty if it is not set.
    Optional<String> in(SparkConf conf) {
        return conf.contains(key) ? Optional.of(conf.get(key).strip()) : Optional.empty();
    }

    static boolean isKey(String key) {
        return Arrays.stream(values()).anyMatch(setting -> setting.key.equals(key));
    }
}
