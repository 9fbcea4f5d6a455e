package io.cistern.spark;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.ConfigurationException;
import java.util.Arrays;
import java.util.Optional;
import java.util.function.LongSupplier;
import org.apache.spark.SparkConf;
import org.jspecify.annotations.Nullable;

/// Lists the Cistern settings that exist only in Spark. `docs/spark.md` has this list.
public enum PluginSetting {
    /// Limits the device memory of one task.
    TASK_LIMIT(
            "spark.cistern.task.limit",
            "`share`, `none`, a number of bytes from 1, or a share of the device, such as `0.5`",
            "`share` if `spark.task.resource.gpu.amount` is less than 1, else `none`",
            "the maximum requested bytes of a task's live blocks; `share` is `spark.task.resource.gpu.amount` times"
                    + " the device's limit or memory"),
    /// Limits the pinned host memory.
    PINNED(
            "spark.cistern.pinned",
            "a number of bytes, at most twice the default",
            "half of `spark.memory.offHeap.size` if off-heap memory is enabled, else of the executor's memory overhead",
            "the maximum pinned host memory: three quarters for spilled buffers, the rest for copies of rows"),
    /// Sets how often executors report figures.
    FIGURES_INTERVAL(
            "spark.cistern.figures.interval",
            "a time of at least `100ms`",
            "`10s`",
            "how often an executor sends its figures to Spark's driver");

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

    /// Returns a human-readable description of the valid values.
    public String legal() {
        return legal;
    }

    /// Returns a human-readable description of the default.
    public String otherwise() {
        return otherwise;
    }

    /// Returns a human-readable description of the setting.
    public String meaning() {
        return meaning;
    }

    /// Returns the value; empty if it is not set.
    Optional<String> in(SparkConf conf) {
        return conf.contains(key) ? Optional.of(conf.get(key).strip()) : Optional.empty();
    }

    /// Returns a value as a number of bytes, in the syntax of all settings.
    ///
    /// @param deviceBytes the memory that a share is of; null where there is no device
    /// @throws ConfigurationException if it is not one, or less than 1
    long bytes(String value, @Nullable LongSupplier deviceBytes) {
        try {
            long bytes = deviceBytes == null ? ByteSizes.parse(value) : ByteSizes.parse(value, deviceBytes);
            if (bytes > 0) {
                return bytes;
            }
        } catch (IllegalArgumentException e) {
            throw illegal(String.valueOf(e.getMessage()));
        }
        throw illegal("'" + value + "' would refuse every request");
    }

    /// Returns the exception to throw for a value that is not legal.
    ///
    /// @param what the value, and the reason why it is not legal
    ConfigurationException illegal(String what) {
        return new ConfigurationException(key + ": " + what + "; valid: " + legal.replace("`", ""));
    }

    static boolean isKey(String key) {
        return Arrays.stream(values()).anyMatch(setting -> setting.key.equals(key));
    }
}
