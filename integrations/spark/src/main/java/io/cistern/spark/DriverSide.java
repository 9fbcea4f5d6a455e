package io.cistern.spark;

import com.codahale.metrics.Gauge;
import java.util.Map;
import java.util.function.ToLongFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.jspecify.annotations.Nullable;

/// Runs in Spark's driver: rejects invalid settings before any executor starts, and collects and shows figures.
final class DriverSide implements DriverPlugin {
    private final ClusterFigures figures = new ClusterFigures();
    private @Nullable EventLog log;

    @Override
    public Map<String, String> init(SparkContext sc, PluginContext context) {
        SparkSettings.check(context.conf());
        EventLog events = new EventLog(sc, figures);
        sc.addSparkListener(events);
        if (sc.ui().isDefined()) {
            MemoryTab.attach(sc.ui().get(), figures);
        }
        log = events;
        ClusterFigures.ofProcess(figures);
        return Map.of();
    }

    @Override
    public void registerMetrics(String appId, PluginContext context) {
        gauge(context, "executors", ClusterFigures::executorCount);
        gauge(context, "requestedBytes", each -> each.total().requestedBytes());
        gauge(context, "spilledBytes", each -> each.total().spilledBytes());
        gauge(context, "blockedNanos", each -> each.total().blockedNanos());
        gauge(context, "retries", each -> each.total().retries());
        gauge(context, "splits", each -> each.total().splits());
        gauge(context, "leakedBytes", each -> each.total().leakedBytes());
    }

    private void gauge(PluginContext context, String name, ToLongFunction<ClusterFigures> figure) {
        context.metricRegistry().register("cluster." + name, (Gauge<Long>) () -> figure.applyAsLong(figures));
    }

    @Override
    public @Nullable Object receive(Object message) {
        switch (message) {
            case ExecutorFigures executor -> figures.update(executor);
            case LeakReport leak -> {
                figures.add(leak);
                if (log != null) {
                    log.leaked(leak);
                }
            }
            default -> throw new IllegalArgumentException("not one of Cistern's messages: " + message);
        }
        return null;
    }
}
