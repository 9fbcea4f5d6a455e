package io.cistern.spark;

import io.cistern.errors.ConfigurationException;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.SparkConf;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.network.util.JavaUtils;
import org.jspecify.annotations.Nullable;

/// Sends an executor's figures and leaks to the driver, and wakes killed tasks, on a thread of its own.
final class FiguresReporter implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(FiguresReporter.class.getName());
    private static final long DEFAULT_INTERVAL_MILLIS = 10_000;
    private static final long MIN_INTERVAL_MILLIS = 100;
    private static final long WATCH_MILLIS = 100;

    private final PluginContext context;
    private volatile @Nullable Thread thread;

    FiguresReporter(PluginContext context) {
        this.context = context;
    }

    /// @throws ConfigurationException if the setting is not a time, or too short
    static long intervalMillis(SparkConf conf) {
        String set = PluginSetting.FIGURES_INTERVAL.in(conf).orElse(DEFAULT_INTERVAL_MILLIS + "ms");
        try {
            long millis = JavaUtils.timeStringAs(set, TimeUnit.MILLISECONDS);
            if (millis >= MIN_INTERVAL_MILLIS) {
                return millis;
            }
        } catch (NumberFormatException _) {
            // Reported below.
        }
        throw PluginSetting.FIGURES_INTERVAL.illegal("'" + set + "' is not a time of at least 100ms");
    }

    void begin(ExecutorView view, RunningTasks tasks) {
        long interval = intervalMillis(context.conf());
        thread = Thread.ofPlatform().daemon().name("cistern-spark").start(() -> run(interval, view, tasks));
    }

    private void run(long interval, ExecutorView view, RunningTasks tasks) {
        long next = 0;
        while (!Thread.currentThread().isInterrupted()) {
            tasks.wakeKilled();
            long now = System.nanoTime();
            if (next == 0 || now - next >= 0) {
                next = now + TimeUnit.MILLISECONDS.toNanos(interval);
                sendFigures(view);
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(WATCH_MILLIS));
        }
    }

    private void sendFigures(ExecutorView view) {
        try {
            send(view.figures());
        } catch (RuntimeException failure) {
            LOG.log(System.Logger.Level.WARNING, "the figures could not be sent this time", failure);
        }
    }

    /// Sends a message to the driver, without waiting for it.
    void send(Object message) {
        try {
            context.send(message);
        } catch (IOException | RuntimeException gone) {
            LOG.log(System.Logger.Level.DEBUG, "the driver can't be reached: " + gone);
        }
    }

    @Override
    public void close() {
        Thread running = thread;
        if (running != null) {
            running.interrupt();
        }
    }
}
