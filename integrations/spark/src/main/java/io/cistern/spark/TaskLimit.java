package io.cistern.spark;

import io.cistern.MemoryLimit;
import io.cistern.errors.ConfigurationException;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.SparkConf;

/// Limits the bytes that a task may request from its device: to its share, to a number of bytes, or not at all.
///
/// @param byteSize the limit; empty if there is none
record TaskLimit(OptionalLong byteSize) {
    private static final String AMOUNT = "spark.task.resource.gpu.amount";
    private static final String SHARE = "share";
    private static final String NONE = "none";

    /// @param deviceBytes the bytes of the device that this process may use
    /// @throws ConfigurationException if the setting is not a limit
    static TaskLimit of(SparkConf conf, long deviceBytes) {
        double amount = amount(conf);
        String set = PluginSetting.TASK_LIMIT.in(conf).orElse(amount < 1 ? SHARE : NONE);
        return switch (set) {
            case NONE -> new TaskLimit(OptionalLong.empty());
            case SHARE -> new TaskLimit(OptionalLong.of((long) (Math.min(1, amount) * deviceBytes)));
            default -> new TaskLimit(OptionalLong.of(PluginSetting.TASK_LIMIT.bytes(set, () -> deviceBytes)));
        };
    }

    static void check(SparkConf conf) {
        of(conf, Long.MAX_VALUE); // of a device that is not known yet
    }

    private static double amount(SparkConf conf) {
        return conf.getDouble(AMOUNT, 1);
    }

    /// Returns a new limit for one task.
    Optional<MemoryLimit> forTask(String name) {
        return byteSize.isPresent() ? Optional.of(MemoryLimit.of(name, byteSize.getAsLong())) : Optional.empty();
    }
}
