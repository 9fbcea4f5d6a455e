package io.cistern.pressure;

import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Holds the threads of all tasks, and finds those that go first. Guarded by the arbitration's lock.
///
/// There may be tens of thousands, of which few lack memory. Threads that lack memory or wait are in a set of
/// their own, and frequent operations look only at that set.
///
/// **Invariant** ([#check]): a thread is in the lacking set exactly while it contends or awaits its turn; so
/// all threads in a state that [waits][ThreadState#waits] are in it.
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

    /// Returns the threads that contend for memory or await their turn.
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

    /// @param state a state that waits
    long count(ThreadState state) {
        return lacking.stream().filter(thread -> thread.state == state).count();
    }

    /// Returns a thread that waits; null if none does.
    @Nullable
    TaskThread firstWaiting() {
        return lacking.stream()
                .filter(thread -> thread.state.waits())
                .findFirst()
                .orElse(null);
    }

    /// Returns the number of threads that wait.
    long countWaiting() {
        return lacking.stream().filter(thread -> thread.state.waits()).count();
    }

    /// Returns the thread that goes first; of one task, the thread that entered first. Returns null if there is
    /// none.
    ///
    /// @param state a state that waits
    @Nullable
    TaskThread first(ThreadState state, Predicate<TaskThread> which) {
        return inState(state, which).min(TaskThread.ORDER).orElse(null);
    }

    /// Returns the thread that goes last; of one task, the thread that entered last. Returns null if there is
    /// none.
    ///
    /// @param state a state that waits
    @Nullable
    TaskThread last(ThreadState state, Predicate<TaskThread> which) {
        return inState(state, which).max(TaskThread.ORDER).orElse(null);
    }

    private Stream<TaskThread> inState(ThreadState state, Predicate<TaskThread> which) {
        return lacking.stream().filter(thread -> thread.state == state).filter(which);
    }

    /// Returns the bytes that threads which began again have not allocated yet.
    long outstandingBytes() {
        return all.stream().mapToLong(TaskThread::outstandingBytes).sum();
    }

    /// @throws IllegalStateException with the invariant of fields and states that does not hold
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
