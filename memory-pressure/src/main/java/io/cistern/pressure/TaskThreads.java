package io.cistern.pressure;

import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The threads of all tasks, and who of them goes first. Guarded by the arbitration's lock.
///
/// There may be tens of thousands, of which few lack memory: those that do, or wait, are in a set of their
/// own, and what happens often looks at no others.
///
/// **Invariant** ([#check]): a thread is lacking exactly while it contends or awaits its turn; so those in a
/// state that [waits][ThreadState#waits] are.
final class TaskThreads {
    private final Set<TaskThread> all = new LinkedHashSet<>();
    private final Set<TaskThread> lacking = new LinkedHashSet<>();
    private long added;

    void add(TaskThread thread) {
        thread.number = ++added;
        thread.task.threads++;
        all.add(thread);
    }

    /// Removes a thread.
    ///
    /// @return whether it was the last one of its task
    boolean remove(TaskThread thread) {
        all.remove(thread);
        return --thread.task.threads == 0;
    }

    Collection<TaskThread> all() {
        return all;
    }

    /// Those that contend for memory, or await their turn.
    Collection<TaskThread> lacking() {
        return lacking;
    }

    void lacks(TaskThread thread) {
        lacking.add(thread);
    }

    void lacksNoMore(TaskThread thread) {
        lacking.remove(thread);
    }

    boolean any(Predicate<TaskThread> which) {
        return all.stream().anyMatch(which);
    }

    boolean anyLacking(Predicate<TaskThread> which) {
        return lacking.stream().anyMatch(which);
    }

    /// @param state one that waits
    long count(ThreadState state) {
        return lacking.stream().filter(thread -> thread.state == state).count();
    }

    /// One that waits; null if there is none.
    @Nullable
    TaskThread firstWaiting() {
        return lacking.stream()
                .filter(thread -> thread.state.waits())
                .findFirst()
                .orElse(null);
    }

    /// How many wait.
    long countWaiting() {
        return lacking.stream().filter(thread -> thread.state.waits()).count();
    }

    /// The one that goes first, of one task the one that came first; null if there is none.
    ///
    /// @param state one that waits
    @Nullable
    TaskThread first(ThreadState state, Predicate<TaskThread> which) {
        return inState(state, which).min(TaskThread.ORDER).orElse(null);
    }

    /// The one that goes last, of one task the one that came last; null if there is none.
    ///
    /// @param state one that waits
    @Nullable
    TaskThread last(ThreadState state, Predicate<TaskThread> which) {
        return inState(state, which).max(TaskThread.ORDER).orElse(null);
    }

    private Stream<TaskThread> inState(ThreadState state, Predicate<TaskThread> which) {
        return lacking.stream().filter(thread -> thread.state == state).filter(which);
    }

    /// Bytes that threads which began again have not allocated yet.
    long outstandingBytes() {
        return all.stream().mapToLong(TaskThread::outstandingBytes).sum();
    }

    /// @throws IllegalStateException naming what does not hold of what is said of fields and states
    void check() {
        for (TaskThread thread : all) {
            require(lacking.contains(thread) == (thread.contends || thread.awaitsTurn), thread, "is in the wrong set");
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
