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
/// A setting of Cistern is set with `spark.` in front; [PluginSetting] lists the settings that exist only in
/// Spark. An invalid setting stops the start of the application, or of the executor, with Cistern's message.
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
