package io.cistern.pressure;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// The threads of all tasks, and who of them goes first. Guarded by the arbitration's lock.
final class TaskThreads {
    private final List<TaskThread> all = new ArrayList<>();

    void add(TaskThread thread) {
        all.add(thread);
    }

    void remove(TaskThread thread) {
        all.remove(thread);
    }

    List<TaskThread> all() {
        return all;
    }

    boolean any(Predicate<TaskThread> which) {
        return all.stream().anyMatch(which);
    }

    long count(ThreadState state) {
        return all.stream().filter(thread -> thread.state == state).count();
    }

    /// The one that goes first, of one task the one that came first; null if there is none.
    @Nullable
    TaskThread first(ThreadState state, Predicate<TaskThread> which) {
        TaskThread first = null;
        for (TaskThread thread : all) {
            if (thread.state == state && which.test(thread) && (first == null || thread.task.goesBefore(first.task))) {
                first = thread;
            }
        }
        return first;
    }

    /// The one that goes last, of one task the one that came last; null if there is none.
    @Nullable
    TaskThread last(ThreadState state, Predicate<TaskThread> which) {
        TaskThread last = null;
        for (TaskThread thread : all) {
            if (thread.state == state && which.test(thread) && (last == null || !thread.task.goesBefore(last.task))) {
                last = thread;
            }
        }
        return last;
    }

    /// Bytes that threads which began again have not allocated yet.
    long outstandingBytes() {
        return all.stream().mapToLong(TaskThread::outstandingBytes).sum();
    }

    /// @throws IllegalStateException naming what does not hold of what is said of fields and states
    void check() {
        for (TaskThread thread : all) {
            require(thread.state != ThreadState.BLOCKED || thread.contends, thread, "is blocked without a request");
            require(!thread.contends || thread.lacks != null, thread, "contends for nothing");
            require(thread.state != ThreadState.ROLLED_BACK || thread.awaitsTurn, thread, "waits for no turn");
            require(thread.state != ThreadState.ROLLED_BACK || thread.hasRolledBack, thread, "never rolled back");
            require(thread.freedBytes == 0 || thread.contends, thread, "counts frees that it does not wait for");
        }
        if (!all.isEmpty() && all.stream().allMatch(thread -> thread.state.waits())) {
            throw new IllegalStateException("all wait, and nobody will wake them: " + all);
        }
    }

    private static void require(boolean holds, TaskThread thread, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(thread + " " + otherwise);
        }
    }
}
