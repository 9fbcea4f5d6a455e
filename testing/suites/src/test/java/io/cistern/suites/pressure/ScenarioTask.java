package io.cistern.suites.pressure;

import io.cistern.DeviceMemory;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.pressure.Retry;
import io.cistern.pressure.Task;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;

/// Runs one task. Its pieces of work take block after block, free some in between, and can be rolled back and
/// split at any time.
final class ScenarioTask {
    private final TaskPlan plan;
    private final Task task;
    private final DeviceMemory memory;
    private final MemoryKernels kernels;
    private final Lock sharedLock;

    /// The bytes of all blocks, and of blocks whose piece of work succeeded.
    private final LongAdder allocatedBytes = new LongAdder();

    private final LongAdder usefulBytes = new LongAdder();

    ScenarioTask(TaskPlan plan, Task task, DeviceMemory memory, MemoryKernels kernels, Lock sharedLock) {
        this.plan = plan;
        this.task = task;
        this.memory = memory;
        this.kernels = kernels;
        this.sharedLock = sharedLock;
    }

    Task task() {
        return task;
    }

    long allocatedBytes() {
        return allocatedBytes.sum();
    }

    long lostBytes() {
        return allocatedBytes.sum() - usefulBytes.sum();
    }

    /// Starts a thread of the kind that this task uses, which runs code as a part of it.
    FutureTask<Boolean> start(String name, Runnable code) {
        FutureTask<Boolean> future = new FutureTask<>(() -> task.run(code), true);
        Thread.Builder thread = plan.virtual() ? Thread.ofVirtual() : Thread.ofPlatform();
        thread.name(name).start(future);
        return future;
    }

    /// Does all of the task's work.
    void run() {
        Random random = new Random(plan.seed());
        try (DeviceWork work = new DeviceWork(memory, kernels)) {
            for (int batch = 0; batch < plan.batches(); batch++) {
                int now = batch;
                ItemRange all = new ItemRange(0, plan.items());
                if (plan.pair()) {
                    List<ItemRange> halves = all.halves();
                    FutureTask<Boolean> second =
                            start("task " + plan.id() + " second", () -> runBeside(now, halves.getLast()));
                    try {
                        run(work, random, now, halves.getFirst());
                    } finally {
                        await(second);
                    }
                } else {
                    run(work, random, now, all);
                }
            }
            require(work.mismatches() == 0, "memory of " + plan + " changed in other hands");
            allocatedBytes.add(work.allocatedBytes());
        }
    }

    private void runBeside(int batch, ItemRange range) {
        try (DeviceWork work = new DeviceWork(memory, kernels)) {
            run(work, new Random(plan.seed() + 1 + batch), batch, range);
            require(work.mismatches() == 0, "memory of the second thread of " + plan + " changed in other hands");
            allocatedBytes.add(work.allocatedBytes());
        }
    }

    private static void await(FutureTask<Boolean> second) {
        try {
            second.get();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        } catch (ExecutionException e) {
            throw new IllegalStateException("the second thread failed", e.getCause());
        }
    }

    private void run(DeviceWork work, Random random, int batch, ItemRange range) {
        List<long[]> results = Retry.withRetry(range, ItemRange::halves, part -> workOn(work, random, batch, part));
        int item = range.from();
        for (long[] values : results) {
            for (long value : values) {
                require(value == plan.expected(batch, item), "item " + item + " of batch " + batch + " of " + plan);
                item++;
            }
        }
        require(item == range.to(), "results for " + item + " items instead of " + range.to());
    }

    private long[] workOn(DeviceWork work, Random random, int batch, ItemRange part) {
        long before = work.allocatedBytes();
        int lockAt = plan.locks() ? random.nextInt(plan.blocks()) : -1;
        boolean locked = false;
        try {
            long each = plan.bytes(part.count()) / plan.blocks();
            work.begin(each, random.nextInt(), values(batch, part));
            for (int block = 1; block < plan.blocks(); block++) {
                pause(random);
                if (block == lockAt) {
                    sharedLock.lock();
                    locked = true;
                }
                if (random.nextInt(3) == 0) {
                    work.freeOlder();
                }
                work.extend(each, random.nextInt());
            }
            pause(random);
            long[] values = work.finish(part.count());
            usefulBytes.add(work.allocatedBytes() - before);
            return values;
        } finally {
            if (locked) {
                sharedLock.unlock();
            }
            work.rollBack();
        }
    }

    private long[] values(int batch, ItemRange part) {
        long[] values = new long[part.count()];
        for (int i = 0; i < values.length; i++) {
            values[i] = plan.expected(batch, part.from() + i);
        }
        return values;
    }

    private void pause(Random random) {
        LockSupport.parkNanos(random.nextBoolean() ? 1 : random.nextInt(plan.pauseNanos()));
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException("wrong: " + what);
        }
    }
}
