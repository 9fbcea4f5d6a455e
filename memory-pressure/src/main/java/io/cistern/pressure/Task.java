package io.cistern.pressure;

import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// A piece of work that shares a GPU with others: see [TaskArbiter]. Its threads, platform or virtual,
/// are those that are inside [#run] or [#call] now. When the last of them leaves, the task has ended,
/// and waiting tasks may go on. Threads may enter the task again later. If several objects with the
/// same id were requested while no thread was inside, all of them represent the same task: a thread may
/// enter it through any of them.
///
/// **Order.** A task with a higher priority goes first; of two with the same priority, the one with the lower
/// id.
///
/// **Threads.** Any thread may call any method at any time.
public final class Task {
    private final long id;
    private final int priority;
    private final Arbitration arbitration;

    private final AtomicLong heldBytes = new AtomicLong();
    private final AtomicLong peakBytes = new AtomicLong();

    /// The object of the same id that the threads were in when this one was last entered; usually this one. Guarded
    /// by the arbitration's lock, as are the next four.
    Task entered = this;

    long retries;

    long splits;
    long blockedNanos;
    long lostNanos;

    /// The number of threads inside. Guarded by the arbitration's lock.
    int threads;

    /// The failures that a test has requested, or null.
    volatile @Nullable ForcedOom forced;

    Task(long id, int priority, Arbitration arbitration) {
        this.id = id;
        this.priority = priority;
        this.arbitration = arbitration;
    }

    /// Returns the task's id.
    public long id() {
        return id;
    }

    /// Returns the task's priority; tasks with a higher priority go first.
    public int priority() {
        return priority;
    }

    /// Runs code as a thread of this task. On a thread that is already inside this task, it only runs the code.
    ///
    /// @throws IllegalArgumentException if threads are inside a task with this id and another priority
    /// @throws IllegalStateException if the calling thread is inside another task
    public void run(Runnable work) {
        call(() -> {
            work.run();
            return true;
        });
    }

    /// Runs code as a thread of this task, and returns its result.
    ///
    /// @throws X if the code throws it
    /// @throws IllegalArgumentException if threads are inside a task with this id and another priority
    /// @throws IllegalStateException if the calling thread is inside another task
    public <R, X extends Throwable> R call(ScopedValue.CallableOp<? extends R, X> work) throws X {
        TaskThread outer = arbitration.current();
        if (outer != null) {
            outer.refuseUnless(this);
            return work.call();
        }
        TaskThread self = arbitration.enter(this);
        try {
            return work.call();
        } finally {
            arbitration.leave(self);
        }
    }

    /// Makes the next allocations of this task fail with [RetryOom], to test code that handles it.
    ///
    /// @param count how many fail, at least 0
    /// @param afterAllocations how many succeed first, at least 0
    /// @throws IllegalArgumentException if either is negative
    public void forceRetries(int count, int afterAllocations) {
        forced = new ForcedOom(false, count, afterAllocations);
    }

    /// Makes the next allocations of this task fail with [SplitAndRetryOom], to test code that handles it.
    ///
    /// @param count how many fail, at least 0
    /// @param afterAllocations how many succeed first, at least 0
    /// @throws IllegalArgumentException if either is negative
    public void forceSplits(int count, int afterAllocations) {
        forced = new ForcedOom(true, count, afterAllocations);
    }

    /// Declares that the calling thread has finished a piece of work, which will no longer be rolled
    /// back. [Retry] does this itself. Code that handles [RetryOom] itself should call this method;
    /// otherwise the next piece of work may have to be split although it was never retried. Does nothing
    /// on a thread that is not in this task.
    public void pieceSucceeded() {
        TaskThread self = arbitration.current();
        if (self != null && id == self.task.id) {
            arbitration.succeeded(self);
            self.attemptBegins();
        }
    }

    /// Returns the task's statistics so far.
    public TaskStatistics statistics() {
        return arbitration.statistics(this);
    }

    void holds(long byteSize) {
        long held = heldBytes.addAndGet(byteSize);
        long peak = peakBytes.get();
        while (held > peak && !peakBytes.compareAndSet(peak, held)) { // ends: the peak rises each time
            peak = peakBytes.get();
        }
    }

    void releases(long byteSize) {
        heldBytes.addAndGet(-byteSize);
    }

    long heldBytes() {
        return heldBytes.get();
    }

    long peakBytes() {
        return peakBytes.get();
    }

    /// Returns whether this task goes before another one.
    boolean goesBefore(Task other) {
        return priority != other.priority ? priority > other.priority : id < other.id;
    }

    /// Returns id and priority.
    @Override
    public String toString() {
        return "task " + id + " of priority " + priority;
    }
}
