package io.cistern.spark;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import io.cistern.AllocatorStatistics;
import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.pressure.SpillStatistics;
import io.cistern.spark.ExecutorFigures.DeviceFigures;
import io.cistern.spark.ExecutorFigures.SpillFigures;
import java.util.function.ToLongFunction;

/// Reads the figures of an executor's memory.
record ExecutorView(String executorId, String host, ExecutorMemory memory, RunningTasks tasks) {
    ExecutorFigures figures() {
        return new ExecutorFigures(
                executorId, host, System.currentTimeMillis(), device(), spill(), tasks.figures(), tasks.pools());
    }

    DeviceFigures device() {
        int device = memory.device();
        DeviceCapabilities capabilities =
                memory.driver().capabilities().devices().get(device);
        AllocatorStatistics all = memory.memory().statistics(device);
        return new DeviceFigures(
                device,
                capabilities.name(),
                memory.driver().simulated(),
                memory.configured().spec().toString(),
                memory.deviceBytes(),
                all.requestedBytes(),
                memory.peaked(),
                memory.configured().reservedBytes(device).orElse(-1),
                all.liveBlocks());
    }

    SpillFigures spill() {
        SpillStatistics now = memory.spills().statistics();
        return new SpillFigures(
                now.deviceBytes(),
                now.hostBytes(),
                memory.hostLimitBytes(),
                now.fileBytes(),
                now.spills(),
                now.spilledBytes(),
                now.writtenBytes(),
                now.returnedBytes());
    }

    /// Registers the figures in Spark's metric system, as `plugin.io.cistern.spark.CisternPlugin.NAME`.
    void register(MetricRegistry registry) {
        gauge(registry, "device.requestedBytes", each -> each.device().requestedBytes());
        gauge(registry, "device.requestedPeakBytes", each -> each.device().requestedPeakBytes());
        gauge(registry, "device.reservedBytes", each -> each.device().reservedBytes());
        gauge(registry, "device.liveBlocks", each -> each.device().liveBlocks());
        gauge(registry, "spill.hostBytes", each -> each.spill().hostBytes());
        gauge(registry, "spill.fileBytes", each -> each.spill().fileBytes());
        gauge(registry, "spill.spilledBytes", each -> each.spill().spilledBytes());
        gauge(registry, "tasks.running", each -> each.tasks().figures().running());
        gauge(registry, "tasks.blockedNanos", each -> each.tasks().figures().blockedNanos());
        gauge(registry, "tasks.retries", each -> each.tasks().figures().retries());
        gauge(registry, "tasks.splits", each -> each.tasks().figures().splits());
        gauge(registry, "tasks.leakedBytes", each -> each.tasks().figures().leakedBytes());
    }

    private void gauge(MetricRegistry registry, String name, ToLongFunction<ExecutorView> figure) {
        registry.register(name, (Gauge<Long>) () -> figure.applyAsLong(this));
    }
}
