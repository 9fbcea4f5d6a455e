package io.cistern.spark;

import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;

/// Gives each executor of a Spark application device memory, and each task a pool of its own.
///
/// ```
/// spark.plugins             io.cistern.spark.CisternPlugin
/// spark.cistern.allocator   async
/// spark.cistern.leaks       sites
/// ```
///
/// Put `spark.` before a setting of Cistern to set it in Spark's configuration; [PluginSetting] lists the settings
/// that exist only in Spark. With an invalid setting, the application or the executor does not start, and Cistern's
/// message says why.
///
/// A task's code gets its memory from [TaskMemory#current].
public final class CisternPlugin implements SparkPlugin {
    /// For Spark.
    public CisternPlugin() {}

    @Override
    public DriverPlugin driverPlugin() {
        return new DriverSide();
    }

    @Override
    public ExecutorPlugin executorPlugin() {
        return new ExecutorSide();
    }
}
