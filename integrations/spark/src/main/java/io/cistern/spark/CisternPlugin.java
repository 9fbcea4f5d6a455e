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
/// To set a setting of Cistern in Spark's configuration, put `spark.` before its name; [PluginSetting]
/// lists the settings that exist only in Spark. With an invalid setting, the application or the
/// executor does not start, and Cistern's message says why.
///
/// A task's code gets its memory from [TaskMemory#current].
public final class CisternPlugin implements SparkPlugin {
    /// Creates the plug-in; Spark calls this.
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
