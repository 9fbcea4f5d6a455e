package io.cistern.spark;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDrivers;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.Failures;
import io.cistern.pressure.SpillStore;
import io.cistern.pressure.TaskArbiter;
import io.cistern.spi.catalog.Catalog;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;

/// Holds the device memory of one executor: the configured allocator on the executor's device, an arbiter over
/// it that its tasks share, and the store that spills for them.
///
/// **Threads.** Any.
final class ExecutorMemory implements AutoCloseable {
    private final SparkSettings settings;
    private final CudaDriver driver;
    private final DeviceMemory memory;
    private final int device;
    private final Allocator configured;
    private final Allocator shared;
    private final TaskArbiter arbiter;
    private final SparkEnv env;
    private final HostBudget budget;
    private final SpillStore spills;
    private final StagingMemory staging;
    private final TaskLimit taskLimit;
    private final AtomicLong requestedPeakBytes = new AtomicLong();

    private ExecutorMemory(SparkSettings settings, CudaDriver driver, List<String> addresses, SparkConf conf) {
        this.settings = settings;
        this.driver = driver;
        device = ExecutorDevice.of(addresses, driver);
        memory = DeviceMemory.builder(driver)
                .catalog(Catalog.discover(List.of(), List.of()))
                .open();
        configured = memory.current(device);
        shared = memory.open(OpenOptions.around("arbiter", configured, TaskArbiter::new));
        memory.currents().set(device, shared);
        arbiter = shared.extension(TaskArbiter.class).orElseThrow();
        env = SparkEnv.get();
        budget = HostBudget.take(conf, env);
        spills = SpillStore.open(memory, arbiter, budget.spillBytes(), spillDirectory(env));
        staging = new StagingMemory(memory, budget.stagingBytes());
        taskLimit = TaskLimit.of(conf, deviceBytes());
    }

    /// Returns the executor's local directory with the most room. Spark deletes these directories, even after a kill.
    ///
    /// @throws ConfigurationException if there is no local directory, or it can't be written to
    private static Path spillDirectory(SparkEnv env) {
        File roomiest = null;
        for (File each : env.blockManager().diskBlockManager().localDirs()) {
            roomiest = roomiest == null || each.getUsableSpace() > roomiest.getUsableSpace() ? each : roomiest;
        }
        if (roomiest == null) {
            throw new ConfigurationException("Spark has no local directory for spilled buffers: set spark.local.dir");
        }
        try {
            return Files.createDirectories(roomiest.toPath().resolve("cistern"));
        } catch (IOException e) {
            throw new ConfigurationException("spilled buffers can't be written to " + roomiest, e);
        }
    }

    /// Opens an executor's memory from Spark's configuration.
    ///
    /// @param addresses the executor's GPUs, as Spark names them
    /// @throws ConfigurationException if a setting is invalid or can't be followed
    static ExecutorMemory open(SparkConf conf, List<String> addresses) {
        Map<String, String> defaults = new HashMap<>(ExecutorDevice.simulatedDevices(addresses));
        defaults.put(Setting.LEAKS.key(), "sites");
        SparkSettings settings = SparkSettings.apply(conf, defaults);
        try {
            return open(settings, conf, addresses);
        } catch (RuntimeException | Error refused) {
            settings.close();
            throw refused;
        }
    }

    private static ExecutorMemory open(SparkSettings settings, SparkConf conf, List<String> addresses) {
        CudaDriver driver = openDriver();
        try {
            return new ExecutorMemory(settings, driver, addresses, conf);
        } catch (RuntimeException | Error refused) {
            driver.close();
            throw refused;
        }
    }

    private static CudaDriver openDriver() {
        try {
            return CudaDrivers.openBest();
        } catch (IllegalSettingException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
    }

    DeviceMemory memory() {
        return memory;
    }

    CudaDriver driver() {
        return driver;
    }

    int device() {
        return device;
    }

    /// Returns the configured allocator.
    Allocator configured() {
        return configured;
    }

    /// Returns the allocator that all tasks share.
    Allocator shared() {
        return shared;
    }

    TaskArbiter arbiter() {
        return arbiter;
    }

    SpillStore spills() {
        return spills;
    }

    long hostLimitBytes() {
        return budget.spillBytes();
    }

    StagingMemory staging() {
        return staging;
    }

    TaskLimit taskLimit() {
        return taskLimit;
    }

    /// Looks at the peaks of the allocators and pools that are open, and returns the highest sum of them so far.
    /// Called before a task's pool closes, since its peak goes with it.
    long peaked() {
        return requestedPeakBytes.accumulateAndGet(memory.statistics(device).requestedPeakBytes(), Math::max);
    }

    /// Returns the bytes that this process may use: the device's memory, or less by a limit.
    long deviceBytes() {
        long total = driver.capabilities().devices().get(device).totalBytes();
        return Math.min(total, memory.limits().device(device).byteSize());
    }

    @Override
    public void close() {
        Failures failures = new Failures();
        failures.gather(spills::close);
        failures.gather(() -> budget.giveBack(env));
        failures.gather(memory::close);
        failures.gather(driver::close);
        failures.gather(settings::close);
        failures.rethrow();
    }
}
