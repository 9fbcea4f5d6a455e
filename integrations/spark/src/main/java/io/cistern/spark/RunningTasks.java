package io.cistern.spark;

import io.cistern.diagnostics.LiveBlock;
import io.cistern.internal.names.Failures;
import io.cistern.spark.ExecutorFigures.PoolFigures;
import io.cistern.spark.ExecutorFigures.TaskFigures;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.jspecify.annotations.Nullable;

/// Keeps the tasks that run in an executor now, and sums over those that have ended.
///
/// **Threads.** Any.
final class RunningTasks {
    private static final System.Logger LOG = System.getLogger(RunningTasks.class.getName());

    /// The tasks of the executor in this process, which runs one at a time.
    private static final AtomicReference<@Nullable RunningTasks> OF_PROCESS = new AtomicReference<>();

    private final String executorId;
    private final ExecutorMemory memory;
    private final Consumer<LeakReport> leaks;
    private final Map<Long, TaskMemory> running = new ConcurrentHashMap<>();

    /// The sums over tasks that have ended. Guarded by this.
    private TaskFigures ended = TaskFigures.NONE;

    RunningTasks(String executorId, ExecutorMemory memory, Consumer<LeakReport> leaks) {
        this.executorId = executorId;
        this.memory = memory;
        this.leaks = leaks;
    }

    /// Makes it the object that [TaskMemory#current] asks; null for none.
    static void ofProcess(@Nullable RunningTasks tasks) {
        OF_PROCESS.set(tasks);
    }

    static TaskMemory current() {
        RunningTasks tasks = OF_PROCESS.get();
        TaskContext context = TaskContext.get();
        if (tasks == null || context == null) {
            throw new IllegalStateException(
                    context == null
                            ? "this thread is not running a Spark task"
                            : "this executor has no device memory: set spark.plugins=" + CisternPlugin.class.getName());
        }
        TaskMemory task = tasks.running.get(context.taskAttemptId());
        if (task == null) {
            throw new IllegalStateException(TaskName.of(context) + " has ended");
        }
        return task;
    }

    /// Opens the memory of a task that starts, on its thread.
    void begin(TaskContext context) {
        TaskMemory task = TaskMemory.begin(memory, context);
        running.put(task.name().id(), task);
        TaskCompletionListener atEnd = _ -> end(task);
        context.addTaskCompletionListener(atEnd);
    }

    private void end(TaskMemory task) {
        running.remove(task.name().id());
        Failures failures = new Failures();
        List<LiveBlock> leaked = task.end(failures);
        LeakReport.of(executorId, task.name(), leaked).forEach(this::report);
        boolean failed = false;
        try {
            failures.rethrow();
        } catch (RuntimeException failure) {
            failed = true;
            LOG.log(
                    System.Logger.Level.ERROR,
                    task.name() + ": some of its memory could not be freed at its end",
                    failure);
        } finally {
            hasEnded(task, leaked, failed);
        }
    }

    private synchronized void hasEnded(TaskMemory task, List<LiveBlock> leaked, boolean failed) {
        ended = ended.plus(task.statistics()).ended(leaked, failed);
    }

    private void report(LeakReport leak) {
        LOG.log(System.Logger.Level.WARNING, leak.toString());
        leaks.accept(leak);
    }

    void wakeKilled() {
        running.values().forEach(TaskMemory::wakeIfKilled);
    }

    /// Returns the sums over all tasks, running or ended.
    synchronized TaskFigures figures() {
        TaskFigures sum = ended;
        for (TaskMemory task : running.values()) {
            sum = sum.plus(task.statistics());
        }
        return sum;
    }

    /// Returns the pools that hold most bytes.
    List<PoolFigures> pools() {
        return running.values().stream()
                .map(RunningTasks::pool)
                .sorted(Comparator.comparingLong(PoolFigures::requestedBytes).reversed())
                .limit(ExecutorFigures.MAX_POOLS)
                .toList();
    }

    private static PoolFigures pool(TaskMemory task) {
        long limit = task.limit().map(each -> each.byteSize()).orElse(-1L);
        return new PoolFigures(
                task.name(), task.figures().requestedBytes(), task.figures().requestedPeakBytes(), limit);
    }
}
