package io.cistern.spark;

import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;

/// Gives each executor of a Spark application device memory, and each of its tasks a pool of its own.
///
/// ```
/// spark.plugins             io.cistern.spark.CisternPlugin
/// spark.cistern.allocator   async
/// spark.cistern.leaks       sites
/// ```
///
/// A setting of Cistern has `spark.` in front; [PluginSetting] has those that only Spark needs. A setting that
/// can't be followed stops the application's start, or the executor's, with the message that Cistern gives.
///
/// Code of a task finds its memory by [TaskMemory#current].
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
