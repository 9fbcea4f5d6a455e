package io.cistern.pressure;

import io.cistern.cuda.process.ProcessFence;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.threads.HeldLock;
import io.cistern.internal.threads.RestingThreads;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// Decides which thread waits, goes on or gives up: the states of [ThreadState] and the rules between them,
/// under one lock. A thread takes the lock if it was refused memory, if it frees something while others wait,
/// and when it enters or leaves a task. No thread holds it during a call of the allocator.
///
/// **Refused** (`refused`). A thread first registers as waiting, so that frees are counted for it from now on,
/// and makes another attempt. If it is refused again and enough was freed meanwhile, it asks again;
/// otherwise it is blocked.
///
/// **Freed** (`freed`). The bytes are counted for each thread that lacks memory of that device. [WakeupPolicy]
/// decides which thread goes on, and which gives up if none can.
///
/// **A full Java heap.** The bookkeeping needs no Java heap once a thread has entered. So an [OutOfMemoryError]
/// ends only the call that throws it, and leaves no state that other threads wait for.
final class Arbitration {
    /// How often one of the waiting threads checks whether all threads wait. A wait inside the arbiter is
    /// noticed at once; this finds threads that wait elsewhere.
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final boolean FENCED_BY_OTHERS = ProcessFence.isSupported();

    private final HeldLock lock = new HeldLock();
    private final TaskThreads threads = new TaskThreads();

    /// The tasks that have threads inside. Guarded by the lock.
    private final Map<Long, Task> tasks = new HashMap<>();

    private final BlockOwners owners;
    private final WakeupPolicy turns;

    /// The waiting thread that checks whether all do; null while none waits. Guarded by the lock.
    private @Nullable TaskThread looking;

    /// The number of threads that lack memory or have rolled back; each free reads it. Written under the lock.
    private volatile int waiting;

    /// @param patience see [BlockedThreadDetector], as for `longestWait`
    Arbitration(BlockOwners owners, Duration patience, Duration longestWait) {
        this.owners = owners;
        turns = new WakeupPolicy(threads, owners, new BlockedThreadDetector(lock, patience, longestWait));
    }

    /// Returns the calling thread as a thread of a task of this arbiter; null if it is in none.
    @Nullable
    TaskThread current() {
        TaskThread thread = TaskThread.CURRENT.get();
        while (thread != null && thread.arbitration() != this) {
            thread = thread.outer;
        }
        return thread;
    }

    /// Returns the task of an id if it has threads inside; otherwise a new one.
    Task task(long id, int priority) {
        try (HeldLock _ = lock.held()) {
            return inside(new Task(id, priority, this));
        }
    }

    /// Returns the task that has threads inside and the id of this one; otherwise this one.
    private Task inside(Task requested) {
        Task task = tasks.getOrDefault(requested.id(), requested);
        if (task.priority() != requested.priority()) {
            throw new IllegalArgumentException(
                    task + " already exists; its priority can't change to " + requested.priority());
        }
        return task;
    }

    TaskThread enter(Task requested) {
        try (HeldLock _ = lock.held()) {
            Task task = inside(requested);
            TaskThread self = new TaskThread(task, this, lock.newCondition());
            self.becomeCurrent();
            try {
                tasks.put(task.id(), task);
            } catch (Throwable heapIsFull) { // the map may contain the task then
                self.restoreOuter();
                removeIfEnded(task);
                throw heapIsFull;
            }
            requested.entered = task;
            threads.add(self);
            return self;
        }
    }

    private void removeIfEnded(Task task) {
        if (task.threads == 0) {
            tasks.remove(task.id());
        }
    }

    /// Ends a thread's part in a task. Memory that it held may be free now, and all remaining threads may be
    /// waiting.
    void leave(TaskThread self) {
        self.restoreOuter();
        try (HeldLock _ = lock.held()) {
            threads.remove(self);
            removeIfEnded(self.task);
            turns.afterEnd();
            turns.breakDeadlock();
        }
    }

    /// Allocates for a thread that was refused.
    ///
    /// @param attempt throws a [DeviceOutOfMemoryException] if there is still no memory
    /// @throws DeviceOutOfMemoryException if the thread is interrupted, or a limit of the program refuses
    long allocate(TaskThread self, Refusal first, LongSupplier attempt) {
        try {
            lacks(self, first);
            while (true) {
                try {
                    long address = attempt.getAsLong();
                    self.expectedBytes = 0;
                    return address;
                } catch (DeviceOutOfMemoryException failure) {
                    if (failure.isByLimit()) {
                        throw failure;
                    }
                    refused(self, new Refusal(first.byteSize(), first.device(), failure));
                }
            }
        } finally {
            served(self);
        }
    }

    /// Counts frees for the thread from here on. The fence is for threads that free: if such a thread did not see
    /// this one waiting, this one's next attempt sees the memory that was freed.
    private void lacks(TaskThread self, Refusal refusal) {
        try (HeldLock _ = lock.held()) {
            threads.lacks(self);
            waiting = threads.countLacking();
            self.contends = true;
            self.lacks = refusal;
            self.freedBytes = 0;
        }
        fence();
    }

    /// Ends [#allocate], whether it succeeded or failed.
    private void served(TaskThread self) {
        try (HeldLock _ = lock.held()) {
            threads.lacksNoMore(self);
            waiting = threads.countLacking();
            self.contends = false;
            self.freedBytes = 0;
            self.state = self.state.waits() ? ThreadState.RUNNING : self.state;
            if (self.state == ThreadState.RUNNING) {
                self.lacks = null;
            }
            turns.pass();
        }
    }

    /// Waits until another attempt is worth it.
    ///
    /// @throws TaskOom if the thread has to give up instead
    private void refused(TaskThread self, Refusal refusal) {
        ThreadState told = RestingThreads.during(() -> awaitAnother(self, refusal));
        if (told == ThreadState.ROLLING_BACK || told == ThreadState.SPLITTING) {
            throw givingUp(self, told == ThreadState.SPLITTING, refusal);
        }
    }

    private ThreadState awaitAnother(TaskThread self, Refusal refusal) {
        try (HeldLock _ = lock.held()) {
            self.lacks = refusal;
            self.expectedBytes = 0;
            boolean again = WakeupPolicy.isWorthATry(self);
            self.freedBytes = 0;
            if (!again) {
                self.state = ThreadState.BLOCKED;
                turns.pass();
                turns.breakDeadlock();
                if (!awaitWaking(self)) {
                    throw refusal.surfacing();
                }
            }
            return self.state;
        }
    }

    /// Creates the exception that makes a thread give up. If the Java heap is full, the thread goes on with
    /// an [OutOfMemoryError], and nobody waits for its rollback.
    private TaskOom givingUp(TaskThread self, boolean splits, Refusal refusal) {
        boolean rollsBack = false;
        try {
            TaskOom told = told(self, splits, refusal);
            rollsBack = !splits;
            return told;
        } finally {
            if (!rollsBack) {
                goOn(self);
            }
        }
    }

    private void goOn(TaskThread self) {
        try (HeldLock _ = lock.held()) {
            self.state = ThreadState.RUNNING;
        }
    }

    /// Creates the exception that makes a thread give up, and counts it.
    TaskOom told(TaskThread self, boolean splits, Refusal refusal) {
        TaskOom told =
                splits ? new SplitAndRetryOom(self, refusal, othersHold(self.task)) : new RetryOom(self, refusal);
        try (HeldLock _ = lock.held()) {
            self.task.splits += splits ? 1 : 0;
            self.task.retries += splits ? 0 : 1;
            self.attemptLost();
        }
        return told;
    }

    /// Describes what other tasks hold, for the message.
    private String othersHold(Task than) {
        List<String> held = new ArrayList<>();
        List<TaskThread> inside = all();
        for (Task task : owners.tasks()) {
            if (task != than && task.heldBytes() > 0) {
                held.add(task + " holds " + task.heldBytes() + " bytes and " + whereIts(task, inside));
            }
        }
        return held.isEmpty() ? "no other task holds memory" : String.join(", ", held);
    }

    private static String whereIts(Task task, List<TaskThread> inside) {
        List<String> places = inside.stream()
                .filter(thread -> thread.task == task)
                .map(TaskThread::place)
                .toList();
        return places.isEmpty() ? "has no thread inside" : String.join(" and ", places);
    }

    private List<TaskThread> all() {
        try (HeldLock _ = lock.held()) {
            return threads.all();
        }
    }

    /// Waits on the thread's condition until another thread changes its state. Only one waiting thread checks
    /// from time to time; the others sleep, since a thousand threads that each wake up would keep a processor
    /// busy.
    ///
    /// @return false if the thread was interrupted: then it runs, and the interrupt is kept
    private boolean awaitWaking(TaskThread self) {
        ThreadState waits = self.state;
        long began = System.nanoTime();
        try {
            while (self.state == waits && waits.waits()) {
                looking = looking == null ? self : looking;
                if (!self.equals(looking)) {
                    self.wakeUp.await();
                } else if (self.wakeUp.awaitNanos(LOOK_NANOS) <= 0 && self.state == waits) {
                    turns.breakDeadlock();
                }
            }
            return true;
        } catch (InterruptedException interrupt) {
            Thread.currentThread().interrupt();
            if (self.state == waits) {
                WakeupPolicy.wake(self);
            }
            return self.state != ThreadState.RUNNING;
        } finally {
            if (self.equals(looking)) {
                lookNoMore();
            }
            self.waited(System.nanoTime() - began);
        }
    }

    /// Makes the next waiting thread the one that checks. If that thread is woken before it notices, it passes
    /// the duty on.
    private void lookNoMore() {
        looking = turns.firstWaiting();
        if (looking != null) {
            looking.wakeUp.signal();
        }
    }

    /// Waits for the turn of a thread, if it has rolled back.
    void awaitTurn(TaskThread self) {
        try (HeldLock _ = lock.held()) {
            if (self.state == ThreadState.ROLLING_BACK) {
                awaitTurnLocked(self);
                self.lacks = null;
                self.attemptBegins();
            }
        }
    }

    private void awaitTurnLocked(TaskThread self) {
        threads.lacks(self);
        waiting = threads.countLacking();
        self.awaitsTurn = true;
        self.state = ThreadState.ROLLED_BACK;
        try {
            fence();
            turns.pass();
            turns.breakDeadlock();
            awaitWaking(self);
        } finally {
            threads.lacksNoMore(self);
            waiting = threads.countLacking();
            self.awaitsTurn = false;
            self.state = ThreadState.RUNNING;
        }
    }

    /// Records that a piece of work has succeeded.
    void succeeded(TaskThread self) {
        try (HeldLock _ = lock.held()) {
            self.hasRolledBack = false;
            self.expectedBytes = 0;
            if (self.state == ThreadState.ROLLING_BACK) {
                self.state = ThreadState.RUNNING;
            }
        }
    }

    /// Records that memory was returned to the allocator. While no thread waits, this costs one
    /// read.
    void freed(int device, long byteSize) {
        if (FENCED_BY_OTHERS) {
            VarHandle.acquireFence();
        } else {
            VarHandle.fullFence();
        }
        if (waiting != 0) {
            tellFreed(device, byteSize);
        }
    }

    private static void fence() {
        if (FENCED_BY_OTHERS) {
            ProcessFence.everywhere();
        } else {
            VarHandle.fullFence();
        }
    }

    private void tellFreed(int device, long byteSize) {
        try (HeldLock _ = lock.held()) {
            threads.freed(device, byteSize);
            turns.pass();
        }
    }

    /// Makes the thread count as running from now on, whatever it waits for.
    ///
    /// @param outside false to end that
    /// @return the previous value
    boolean setOutside(TaskThread self, boolean outside) {
        try (HeldLock _ = lock.held()) {
            boolean before = self.isOutside;
            self.isOutside = outside;
            self.waitsElsewhereSince = 0;
            return before;
        }
    }

    TaskStatistics statistics(Task requested) {
        try (HeldLock _ = lock.held()) {
            Task task = requested.entered;
            return new TaskStatistics(
                    task.retries, task.splits, task.blockedNanos, task.lostNanos, task.heldBytes(), task.peakBytes());
        }
    }

    /// Returns one line for each thread of each task, with its state.
    List<String> lines() {
        try (HeldLock _ = lock.held()) {
            return threads.all().stream().map(TaskThread::toString).toList();
        }
    }

    /// @throws IllegalStateException with the invariant that does not hold
    void check() {
        try (HeldLock _ = lock.held()) {
            threads.check();
            long expected = threads.count(thread -> thread.contends || thread.awaitsTurn);
            if (waiting != expected) {
                throw new IllegalStateException(
                        waiting + " are counted as waiting, " + expected + " do: " + threads.all());
            }
        }
    }
}
