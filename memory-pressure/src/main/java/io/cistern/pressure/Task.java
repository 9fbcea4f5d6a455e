package io.cistern.pressure;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAccumulator;
import org.jspecify.annotations.Nullable;

/// A piece of work that shares a GPU with others: see [TaskArbiter]. It has as many threads as are inside [#run]
/// or [#call] now, platform or virtual ones. With the last of them it ends for the others, which may then go on;
/// it may be entered again.
///
/// **Order.** A task of a higher priority goes before one of a lower; of two with the same, the one with the
/// lower id.
///
/// **Threads.** Any thread may call any method at any time.
public final class Task {
    private final long id;
    private final int priority;
    private final Arbitration arbitration;

    private final AtomicLong heldBytes = new AtomicLong();
    private final LongAccumulator peakBytes = new LongAccumulator(Math::max, 0);

    /// Guarded by the arbitration's lock, as the next three.
    long retries;

    long splits;
    long blockedNanos;
    long lostNanos;

    /// How many are inside. Guarded by the arbitration's lock.
    int threads;

    /// What a test has asked for; null otherwise.
    volatile @Nullable ForcedOom forced;

    Task(long id, int priority, Arbitration arbitration) {
        this.id = id;
        this.priority = priority;
        this.arbitration = arbitration;
    }

    /// Its number.
    public long id() {
        return id;
    }

    /// Higher goes first.
    public int priority() {
        return priority;
    }

    /// Runs code as a thread of this task. Within itself it does nothing more than run the code.
    ///
    /// @throws IllegalStateException if the calling thread is one of another task now
    public void run(Runnable work) {
        call(() -> {
            work.run();
            return true;
        });
    }

    /// Runs code as a thread of this task, and returns its result.
    ///
    /// @throws X what the code throws
    /// @throws IllegalStateException if the calling thread is one of another task now
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

    /// Has the next allocations of this task fail with [RetryOom], to test code that handles it.
    ///
    /// @param count how many, at least 0
    /// @param afterAllocations how many go well before, at least 0
    /// @throws IllegalArgumentException if one is negative
    public void forceRetries(int count, int afterAllocations) {
        forced = new ForcedOom(false, count, afterAllocations);
    }

    /// Has the next allocations of this task fail with [SplitAndRetryOom], to test code that handles it.
    ///
    /// @param count how many, at least 0
    /// @param afterAllocations how many go well before, at least 0
    /// @throws IllegalArgumentException if one is negative
    public void forceSplits(int count, int afterAllocations) {
        forced = new ForcedOom(true, count, afterAllocations);
    }

    /// Says that the calling thread has done a piece of work, which will not be rolled back any more. [Retry]
    /// says so by itself; code that handles [RetryOom] in its own way should, or the next piece may be split
    /// without being tried again first. Does nothing on a thread that is not this task's.
    public void pieceSucceeded() {
        TaskThread self = arbitration.current();
        if (self != null && equals(self.task)) {
            arbitration.succeeded(self);
            self.attemptBegins();
        }
    }

    /// What it has been through.
    public TaskStatistics statistics() {
        return arbitration.statistics(this);
    }

    void holds(long byteSize) {
        peakBytes.accumulate(heldBytes.addAndGet(byteSize));
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

    /// Whether this task goes before another one.
    boolean goesBefore(Task other) {
        return priority != other.priority ? priority > other.priority : id < other.id;
    }

    /// Its number and priority.
    @Override
    public String toString() {
        return "task " + id + " of priority " + priority;
    }
}
