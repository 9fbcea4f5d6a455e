package io.cistern.spark;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import java.util.function.ToLongFunction;

/// Registers an executor's figures in Spark's metric system, as `plugin.io.cistern.spark.CisternPlugin.NAME`.
final class ExecutorMetrics {
    private ExecutorMetrics() {}

    static void register(MetricRegistry registry, ExecutorView view) {
        gauge(registry, "device.requestedBytes", view, each -> each.device().requestedBytes());
        gauge(registry, "device.requestedPeakBytes", view, each -> each.device().requestedPeakBytes());
        gauge(registry, "device.reservedBytes", view, each -> each.device().reservedBytes());
        gauge(registry, "device.liveBlocks", view, each -> each.device().liveBlocks());
        gauge(registry, "spill.hostBytes", view, each -> each.spill().hostBytes());
        gauge(registry, "spill.fileBytes", view, each -> each.spill().fileBytes());
        gauge(registry, "spill.spilledBytes", view, each -> each.spill().spilledBytes());
        gauge(registry, "tasks.running", view, each -> each.tasks().figures().running());
        gauge(
                registry,
                "tasks.blockedNanos",
                view,
                each -> each.tasks().figures().blockedNanos());
        gauge(registry, "tasks.retries", view, each -> each.tasks().figures().retries());
        gauge(registry, "tasks.splits", view, each -> each.tasks().figures().splits());
        gauge(
                registry,
                "tasks.leakedBytes",
                view,
                each -> each.tasks().figures().leakedBytes());
    }

    private static void gauge(
            MetricRegistry registry, String name, ExecutorView view, ToLongFunction<ExecutorView> figure) {
        registry.register(name, (Gauge<Long>) () -> figure.applyAsLong(view));
    }
}
