package io.cistern.pressure;

import io.cistern.internal.names.ThreadNames;
import io.cistern.internal.threads.RestingThreads;
import java.util.Comparator;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import org.jspecify.annotations.Nullable;

/// A thread inside a task. The arbitration's lock guards its fields, unless they say otherwise.
final class TaskThread {
    /// The calling thread, in the task that it entered last.
    static final ThreadLocal<@Nullable TaskThread> CURRENT = new ThreadLocal<>();

    /// The order in which threads go first: by task, and within a task by their time of entry.
    static final Comparator<TaskThread> ORDER = (one, other) -> one.task.goesBefore(other.task)
            ? -1
            : other.task.goesBefore(one.task) ? 1 : Long.compare(one.number, other.number);

    final Task task;
    final Thread thread;

    /// Its number; threads that enter later have larger numbers.
    long number;

    /// The same thread in a task of another arbiter that it entered before; null if there is none.
    @Nullable
    final TaskThread outer;

    /// Signalled when the state leaves [ThreadState#BLOCKED] or [ThreadState#ROLLED_BACK].
    final Condition wakeUp;

    /// Its places in the lists of [TaskThreads].
    final TaskThreads.Link inPresent = new TaskThreads.Link(this);

    final TaskThreads.Link inLacking = new TaskThreads.Link(this);

    /// Bytes of live blocks that it allocated. Written by any thread.
    final AtomicLong heldBytes = new AtomicLong();

    ThreadState state = ThreadState.RUNNING;

    /// The request for which it lacks memory, from the first refusal until it is served or given up.
    @Nullable
    Refusal lacks;

    /// Whether it is in the allocator with that request, or blocked.
    boolean contends;

    /// Whether it waits for its turn to begin again, or has been woken and has not run since.
    boolean awaitsTurn;

    /// The bytes freed on that request's device since its last attempt began.
    long freedBytes;

    /// Whether it began again since its piece of work last succeeded or became smaller.
    boolean hasRolledBack;

    /// The bytes that all tasks held when it had to roll back, and the bytes that it would hold if its
    /// request were served.
    long heldByAll;

    long neededBytes;

    /// The bytes that it is expected to hold soon, since it was allowed to begin again; 0 if unknown.
    long expectedBytes;

    /// Since when it has been seen waiting for something other than the arbiter, in nanoseconds; 0 if it is not
    /// waiting so.
    long waitsElsewhereSince;

    /// Whether the program said that it does not wait for a task.
    boolean isOutside;

    /// When the present piece of work began, and how long it has waited since, in nanoseconds. Only the thread
    /// itself uses both.
    private long attemptBegan;

    private long attemptWaited;

    private final Arbitration arbitration;

    TaskThread(Task task, Arbitration arbitration, Condition wakeUp) {
        this.task = task;
        this.thread = Thread.currentThread();
        this.outer = CURRENT.get();
        this.arbitration = arbitration;
        this.wakeUp = wakeUp;
        attemptBegins();
    }

    Arbitration arbitration() {
        return arbitration;
    }

    /// Makes this the calling thread's innermost task. If that fails, nothing has changed.
    void becomeCurrent() {
        try {
            CURRENT.set(this);
        } catch (Throwable heapIsFull) { // the thread-local may be set then
            restoreOuter();
            throw heapIsFull;
        }
    }

    /// Restores the thread's outer task in its thread-local.
    void restoreOuter() {
        if (outer == null) {
            CURRENT.remove();
        } else {
            CURRENT.set(outer);
        }
    }

    /// Begins a piece of work, which may have to be rolled back.
    void attemptBegins() {
        attemptBegan = System.nanoTime();
        attemptWaited = 0;
    }

    void waited(long nanos) {
        attemptWaited += nanos;
        task.blockedNanos += nanos;
    }

    /// Counts the lost time of the piece of work.
    void attemptLost() {
        task.lostNanos += System.nanoTime() - attemptBegan - attemptWaited;
        attemptBegins();
    }

    void holds(long byteSize) {
        heldBytes.addAndGet(byteSize);
        task.holds(byteSize);
    }

    void releases(long byteSize) {
        heldBytes.addAndGet(-byteSize);
        task.releases(byteSize);
    }

    /// Returns the bytes that it is still expected to allocate.
    long outstandingBytes() {
        return Math.max(0, expectedBytes - heldBytes.get());
    }

    boolean lacksOn(int device) {
        return lacks != null && lacks.device() == device;
    }

    void blockUntilReady() {
        refuseOtherThreads();
        RestingThreads.during(() -> arbitration.awaitTurn(this));
    }

    /// @throws IllegalStateException if another thread calls
    void refuseOtherThreads() {
        if (!Thread.currentThread().equals(thread)) {
            throw new IllegalStateException("thread " + ThreadNames.ofCaller() + " is not " + ThreadNames.of(thread)
                    + " of " + task + ", which got the error");
        }
    }

    /// @throws IllegalStateException if the task is not its own
    void refuseUnless(Task wanted) {
        if (task.id() != wanted.id()) {
            throw new IllegalStateException(
                    "thread " + ThreadNames.of(thread) + " belongs to " + task + ", not to " + wanted);
        }
    }

    /// Ends a piece of work, and resets the state that belongs to it.
    void attemptSucceeded() {
        arbitration.succeeded(this);
    }

    /// Describes where the thread is, for the message.
    String place() {
        String who = "its thread " + ThreadNames.of(thread);
        if (state.waits()) {
            return who + " waits for memory, too";
        }
        StackTraceElement[] frames = thread.getStackTrace();
        int program = 0;
        while (program < frames.length && isOfJava(frames[program])) {
            program++;
        }
        String place = program == 0
                ? ""
                : frames[program - 1].getClassName() + "." + frames[program - 1].getMethodName() + ", called by ";
        long since = waitsElsewhereSince;
        String what = since == 0 ? " is in " : " has waited " + (System.nanoTime() - since) / 1_000_000 + " ms in ";
        return who + what + place + (program == frames.length ? "Java" : frames[program]);
    }

    private static boolean isOfJava(StackTraceElement frame) {
        return frame.getClassName().startsWith("java.") || frame.getClassName().startsWith("jdk.");
    }

    @Override
    public String toString() {
        return task + ", " + ThreadNames.of(thread) + ": " + state
                + (lacks == null ? "" : ", lacks " + lacks.byteSize());
    }
}
