package io.cistern.spark;

import java.util.Map;
import org.apache.spark.ExceptionFailure;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.util.Utils;
import org.jspecify.annotations.Nullable;

/// Runs in an executor: opens its memory and follows its tasks.
final class ExecutorSide implements ExecutorPlugin {
    private static final System.Logger LOG = System.getLogger(ExecutorSide.class.getName());

    private @Nullable ExecutorMemory memory;
    private @Nullable RunningTasks tasks;
    private @Nullable FiguresReporter reporter;
    private boolean hasOwnProcess;

    @Override
    public void init(PluginContext context, Map<String, String> extraConf) {
        FiguresReporter reports = new FiguresReporter(context);
        ExecutorMemory opened = ExecutorMemory.open(context.conf(), ExecutorDevice.addresses(context.resources()));
        RunningTasks running = new RunningTasks(context.executorID(), opened, reports::send);
        ExecutorView view = new ExecutorView(context.executorID(), Utils.localHostName(), opened, running);
        view.register(context.metricRegistry());
        reports.begin(view, running);
        memory = opened;
        tasks = running;
        reporter = reports;
        hasOwnProcess = !context.executorID().equals("driver");
        RunningTasks.ofProcess(running);
        LOG.log(System.Logger.Level.INFO, "device memory of executor {0}: {1}", context.executorID(), opened.memory());
    }

    @Override
    public void onTaskStart() {
        TaskContext context = TaskContext.get();
        if (tasks != null && context != null) {
            tasks.begin(context);
        }
    }

    /// Ends the executor if its device's context is dead, because it could serve no other task. Spark
    /// starts a new one.
    @Override
    public void onTaskFailed(TaskFailedReason reason) {
        if (hasOwnProcess
                && reason instanceof ExceptionFailure failure
                && failure.exception().isDefined()) {
            DeadDevice.endProcessIfDead(failure.exception().get());
        }
    }

    @Override
    public void shutdown() {
        RunningTasks.ofProcess(null);
        if (reporter != null) {
            reporter.close();
        }
        if (memory != null) {
            memory.close();
        }
    }
}
