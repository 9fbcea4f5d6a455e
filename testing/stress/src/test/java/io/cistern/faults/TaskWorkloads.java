package io.cistern.faults;

import io.cistern.Allocator;
import io.cistern.OpenOptions;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.pressure.Retry;
import io.cistern.pressure.RetryOom;
import io.cistern.pressure.Task;
import io.cistern.pressure.TaskArbiter;
import io.cistern.pressure.TaskOom;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/// What tasks do that share a device.
final class TaskWorkloads {
    private static final long MIB = 1 << 20;
    private static final long LEFT_BYTES = 160 * MIB;

    private TaskWorkloads() {}

    /// Tasks hold many blocks, wait for one another, roll back and split.
    static void all(GpuProgram program) throws Exception {
        TaskArbiter[] made = new TaskArbiter[1];
        Allocator shared = program.memory.open(OpenOptions.around(
                "shared", program.allocator, upstream -> made[0] = new TaskArbiter(upstream, Duration.ofMillis(1))));
        program.toClose.add(shared);
        TaskArbiter arbiter = made[0];
        program.toClose.add(() -> nobodyIsLeft(arbiter));
        arbiter.addRoomMaker(_ -> false);
        program.takeForeign(GpuProgram.CAPACITY - LEFT_BYTES);
        Task task = arbiter.task(1, 0);
        task.run(() -> manyBlocks(program, shared));
        task.run(() -> splits(program, shared));
        task.run(() -> isForced(program, shared, task));
        task.run(() -> failsInAPart(program, shared, task));
        besideAnother(program, shared, arbiter);
    }

    private static void nobodyIsLeft(TaskArbiter arbiter) {
        arbiter.checkInvariants();
        if (!arbiter.threads().isEmpty()) {
            throw new IllegalStateException("threads are left in tasks");
        }
    }

    /// So many that the table of their owners grows.
    private static void manyBlocks(GpuProgram program, Allocator shared) {
        for (int block = 0; block < 3000; block++) {
            program.allocate(shared, 512, 0);
        }
        program.freeAll(0);
    }

    private static void splits(GpuProgram program, Allocator shared) {
        Retry.withRetry(2 * LEFT_BYTES, TaskWorkloads::halves, part -> {
            program.free(program.allocate(shared, part, 0), 0);
            return part;
        });
    }

    private static void isForced(GpuProgram program, Allocator shared, Task task) {
        task.forceRetries(1, 0);
        Retry.withRetry(() -> pair(program, shared));
        task.forceSplits(1, 0);
        try {
            Retry.withRetry(() -> pair(program, shared));
        } catch (DeviceOutOfMemoryException _) {
            // it can't be split
        }
    }

    private static long pair(GpuProgram program, Allocator shared) {
        program.free(program.allocate(shared, MIB, 0), 0);
        return MIB;
    }

    /// One part has succeeded, one fails, and one is left.
    private static void failsInAPart(GpuProgram program, Allocator shared, Task task) {
        task.forceSplits(1, 0);
        int[] calls = {0};
        try {
            Retry.withRetry(3, size -> Collections.nCopies(size, 1), part -> {
                program.free(program.allocate(shared, part, 0), 0);
                if (calls[0]++ == 1) {
                    throw new IllegalStateException("bad part");
                }
                return part;
            });
        } catch (IllegalStateException _) {
            // as it must be
        }
    }

    private static List<Long> halves(long byteSize) {
        return List.of(byteSize / 2, byteSize / 2);
    }

    /// Each of two tasks holds half of the memory and wants more. The one whose calls fail goes last.
    private static void besideAnother(GpuProgram program, Allocator shared, TaskArbiter arbiter) throws Exception {
        CountDownLatch holds = new CountDownLatch(1);
        Thread other =
                Thread.ofPlatform().daemon().start(() -> arbiter.task(2, 1).run(() -> first(program, shared, holds)));
        program.toClose.add(other::join);
        holds.await();
        arbiter.task(1, 0).run(() -> last(program, shared));
        other.join();
    }

    private static void first(GpuProgram program, Allocator shared, CountDownLatch holds) {
        long half = shared.allocate(LEFT_BYTES / 2 - 2 * MIB, 0, program.streams[0]);
        holds.countDown();
        try {
            program.memory.free(shared.allocate(LEFT_BYTES / 4, 0, program.streams[0]), program.streams[0]);
        } catch (TaskOom | DeviceOutOfMemoryException _) {
            // the other one has failed and keeps its half
        } finally {
            program.memory.free(half, program.streams[0]);
        }
    }

    private static void last(GpuProgram program, Allocator shared) {
        long half = program.allocate(shared, LEFT_BYTES / 2 - 2 * MIB, 1);
        try {
            program.free(program.allocate(shared, LEFT_BYTES / 4, 1), 1);
            program.free(half, 1);
        } catch (RetryOom told) {
            program.free(half, 1);
            told.blockUntilReady();
        }
    }
}
