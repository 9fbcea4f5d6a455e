package io.cistern.suites.pressure;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.pressure.TaskArbiter;
import io.cistern.testkit.DiscoveredCatalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/// Runs tasks that together want three times the capacity, drawn from a seed. Their sizes differ by factors,
/// and so do their priorities; threads are platform and virtual ones. Some tasks have two threads of which one
/// waits for the other, and some hold a lock that others wait for. Each task must end with the right results,
/// computed through device memory whose contents are checked.
///
/// A seed always draws the same tasks; the order of threads is not fixed.
final class TaskScenarios {
    /// The bytes that tasks want together, in multiples of the capacity.
    static final int WANTED = 3;

    private static final int PATIENCE_MILLIS = 5;

    /// A hundred times longer than any scenario takes; a deadlock takes for ever.
    private static final long LIMIT_SECONDS = 60;

    /// The interval between checks of the arbiter's invariants; a check takes the lock for a short time.
    private static final long CHECK_NANOS = 1_000_000;

    private final CudaDriver driver;
    private final String upstream;
    private final long capacityBytes;
    private final int taskCount;

    /// @param upstream a spec of an allocator with `capacityBytes`
    TaskScenarios(CudaDriver driver, String upstream, long capacityBytes, int taskCount) {
        this.driver = driver;
        this.upstream = upstream;
        this.capacityBytes = capacityBytes;
        this.taskCount = taskCount;
    }

    /// Runs one scenario to its end.
    ///
    /// @throws IllegalStateException if a task fails, a result is wrong, or the scenario does not end
    ScenarioReport run(long seed) {
        try (MemoryKernels kernels = MemoryKernels.load(driver, 0);
                DeviceMemory memory = DeviceMemory.builder(driver)
                        .catalog(DiscoveredCatalog.find())
                        .open()) {
            Allocator allocator = memory.setCurrent(arbiterOver(upstream));
            TaskArbiter arbiter = allocator.extension(TaskArbiter.class).orElseThrow();
            ScenarioReport report = run(seed, memory, kernels, arbiter);
            long live = allocator.statistics(0).liveBlocks();
            if (live != 0 || !arbiter.threads().isEmpty()) {
                throw new IllegalStateException(live + " blocks are left, and " + arbiter.threads());
            }
            arbiter.checkInvariants();
            return report.plusScenario();
        }
    }

    /// Returns the spec of an arbiter over an allocator.
    static String arbiterOver(String upstream) {
        return "arbiter:patience_millis=" + PATIENCE_MILLIS + ",upstream=\""
                + upstream.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    private ScenarioReport run(long seed, DeviceMemory memory, MemoryKernels kernels, TaskArbiter arbiter) {
        Lock sharedLock = new ReentrantLock();
        List<ScenarioTask> tasks = new ArrayList<>();
        for (TaskPlan plan : TaskPlan.draw(new Random(seed), taskCount, WANTED * capacityBytes)) {
            tasks.add(new ScenarioTask(plan, arbiter.task(plan.id(), plan.priority()), memory, kernels, sharedLock));
        }
        List<FutureTask<Boolean>> running = tasks.stream()
                .map(task -> task.start("task " + task.task().id(), task::run))
                .toList();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        while (running.stream().anyMatch(task -> !task.isDone()) && System.nanoTime() < end) {
            arbiter.checkInvariants();
            LockSupport.parkNanos(CHECK_NANOS);
        }
        running.forEach(task -> await(task, end, arbiter));
        return tasks.stream().map(ScenarioReport::of).reduce(ScenarioReport.NONE, ScenarioReport::plus);
    }

    private static void await(FutureTask<Boolean> task, long end, TaskArbiter arbiter) {
        try {
            task.get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            throw new IllegalStateException("a task failed", e.getCause());
        } catch (TimeoutException e) {
            throw new IllegalStateException("no end in sight: " + arbiter.threads(), e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
