package io.cistern.pressure;

import io.cistern.cuda.process.ProcessFence;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.threads.RestingThreads;
import io.cistern.spi.DeviceAllocator;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Decides which thread waits, goes on or gives up: the states of [ThreadState] and the rules between them,
/// under one lock. A thread takes the lock if it was refused memory, if it frees something while others wait,
/// and when it enters or leaves a task. No thread holds it during a call of the allocator.
///
/// **Refused** (`refused`). A thread first registers as waiting, so that frees are counted for it from now on,
/// and asks the allocator once more. If it is refused again and enough was freed meanwhile, it asks again;
/// otherwise it is blocked.
///
/// **Freed** (`freed`). The bytes are counted for each thread that lacks memory of that device. [WakeupPolicy]
/// decides which thread goes on, and which gives up if none can.
final class Arbitration {
    /// How often one of the waiting threads checks whether all threads wait. A wait inside the arbiter is
    /// noticed at once; this finds threads that wait elsewhere.
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final boolean FENCED_BY_OTHERS = ProcessFence.isSupported();

    private final ReentrantLock lock = new ReentrantLock();
    private final TaskThreads threads = new TaskThreads();
    private final Map<Long, Task> tasks = new HashMap<>();
    private final LongAdder heldBytes = new LongAdder();
    private final WakeupPolicy turns;

    /// The waiting thread that checks whether all do; null while none waits. Guarded by the lock.
    private @Nullable TaskThread looking;

    /// The number of threads that lack memory or have rolled back; each free reads it. Written under the lock.
    private final AtomicInteger waiting = new AtomicInteger();

    /// @param patience see [BlockedThreadDetector]
    Arbitration(Duration patience) {
        turns = new WakeupPolicy(threads, heldBytes, new BlockedThreadDetector(lock, patience));
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

    /// Returns the task of an id if it has threads, or was requested and has not begun; otherwise a new one.
    Task task(long id, int priority) {
        lock.lock();
        try {
            Task task = tasks.computeIfAbsent(id, _ -> new Task(id, priority, this));
            if (task.priority() != priority) {
                throw new IllegalArgumentException("there is " + task + "; its priority can't be " + priority);
            }
            return task;
        } finally {
            lock.unlock();
        }
    }

    TaskThread enter(Task task) {
        lock.lock();
        try {
            TaskThread self = new TaskThread(task, this, lock.newCondition());
            threads.add(self);
            tasks.putIfAbsent(task.id(), task);
            TaskThread.CURRENT.set(self);
            return self;
        } finally {
            lock.unlock();
        }
    }

    /// Ends a thread's part in a task. Memory that it held may be free now, and all remaining threads may be
    /// waiting.
    void leave(TaskThread self) {
        self.restoreOuter();
        lock.lock();
        try {
            if (threads.remove(self)) {
                tasks.remove(self.task.id(), self.task);
            }
            turns.afterEnd();
            turns.breakDeadlock();
        } finally {
            lock.unlock();
        }
    }

    /// Allocates for a thread that was refused.
    ///
    /// @throws DeviceOutOfMemoryException if the thread is interrupted
    long allocate(TaskThread self, DeviceAllocator upstream, Refusal first, long stream) {
        lacks(self, first);
        try {
            while (true) {
                try {
                    long address = upstream.allocate(first.byteSize(), first.device(), stream);
                    self.expectedBytes = 0;
                    return address;
                } catch (DeviceOutOfMemoryException failure) {
                    Refusal again = new Refusal(first.byteSize(), first.device(), failure);
                    boolean _ = RestingThreads.during(() -> refused(self, again));
                }
            }
        } finally {
            served(self);
        }
    }

    /// Counts frees for the thread from here on. The fence is for threads that free: if such a thread did not
    /// see this one waiting, the next attempt sees what it freed.
    private void lacks(TaskThread self, Refusal refusal) {
        lock.lock();
        try {
            waiting.incrementAndGet();
            threads.lacks(self);
            self.contends = true;
            self.lacks = refusal;
            self.freedBytes = 0;
        } finally {
            lock.unlock();
        }
        fence();
    }

    /// Ends [#allocate], whether it succeeded or failed.
    private void served(TaskThread self) {
        lock.lock();
        try {
            waiting.decrementAndGet();
            threads.lacksNoMore(self);
            self.contends = false;
            self.freedBytes = 0;
            if (self.state == ThreadState.RUNNING) {
                self.lacks = null;
            }
            turns.pass();
        } finally {
            lock.unlock();
        }
    }

    /// Waits until another attempt is worth it.
    private boolean refused(TaskThread self, Refusal refusal) {
        lock.lock();
        try {
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
            giveUpIfTold(self, refusal);
            return true;
        } finally {
            lock.unlock();
        }
    }

    private static void giveUpIfTold(TaskThread self, Refusal refusal) {
        if (self.state == ThreadState.ROLLING_BACK) {
            self.task.retries++;
            self.attemptLost();
            throw new RetryOom(self, refusal);
        }
        if (self.state == ThreadState.SPLITTING) {
            self.state = ThreadState.RUNNING;
            throw split(self, refusal);
        }
    }

    private static SplitAndRetryOom split(TaskThread self, Refusal refusal) {
        self.task.splits++;
        self.attemptLost();
        return new SplitAndRetryOom(self, refusal);
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
        looking = threads.firstWaiting();
        if (looking != null) {
            looking.wakeUp.signal();
        }
    }

    /// Waits for the turn of a thread that has rolled back.
    ///
    /// @return whether it had to
    boolean awaitTurn(TaskThread self) {
        lock.lock();
        try {
            if (self.state != ThreadState.ROLLING_BACK) {
                return false;
            }
            waiting.incrementAndGet();
            threads.lacks(self);
            self.awaitsTurn = true;
            fence();
            try {
                self.state = ThreadState.ROLLED_BACK;
                turns.pass();
                turns.breakDeadlock();
                awaitWaking(self);
                self.lacks = null;
            } finally {
                waiting.decrementAndGet();
                threads.lacksNoMore(self);
                self.awaitsTurn = false;
            }
            self.attemptBegins();
            return true;
        } finally {
            lock.unlock();
        }
    }

    /// Notes that a piece of work has succeeded.
    void succeeded(TaskThread self) {
        lock.lock();
        try {
            self.hasRolledBack = false;
            self.expectedBytes = 0;
            if (self.state == ThreadState.ROLLING_BACK) {
                self.state = ThreadState.RUNNING;
            }
        } finally {
            lock.unlock();
        }
    }

    /// Counts a new block of a thread.
    void holds(TaskThread owner, long byteSize) {
        heldBytes.add(byteSize);
        owner.holds(byteSize);
    }

    /// Counts the end of a thread's block, before the allocator frees it.
    void releases(TaskThread owner, long byteSize) {
        heldBytes.add(-byteSize);
        owner.releases(byteSize);
    }

    /// Notes that the allocator has got memory back. While no thread waits, that is one read.
    void freed(int device, long byteSize) {
        if (FENCED_BY_OTHERS) {
            VarHandle.acquireFence();
        } else {
            VarHandle.fullFence();
        }
        if (waiting.get() != 0) {
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
        lock.lock();
        try {
            for (TaskThread thread : threads.lacking()) {
                if (thread.contends && thread.lacksOn(device)) {
                    thread.freedBytes += byteSize;
                }
            }
            turns.pass();
        } finally {
            lock.unlock();
        }
    }

    /// Makes the thread count as running from now on, whatever it waits for.
    ///
    /// @param outside false to end that
    /// @return the previous value
    boolean setOutside(TaskThread self, boolean outside) {
        lock.lock();
        try {
            boolean before = self.isOutside;
            self.isOutside = outside;
            self.waitsElsewhereSince = 0;
            return before;
        } finally {
            lock.unlock();
        }
    }

    /// Fails as a test has requested.
    void force(TaskThread self, ForcedOom forced, Refusal refusal) {
        lock.lock();
        try {
            if (forced.isSplit()) {
                throw split(self, refusal);
            }
            self.task.retries++;
            self.attemptLost();
            throw new RetryOom(self, refusal);
        } finally {
            lock.unlock();
        }
    }

    TaskStatistics statistics(Task task) {
        lock.lock();
        try {
            return new TaskStatistics(
                    task.retries, task.splits, task.blockedNanos, task.lostNanos, task.heldBytes(), task.peakBytes());
        } finally {
            lock.unlock();
        }
    }

    /// Returns one line for each thread of each task, with its state.
    List<String> lines() {
        lock.lock();
        try {
            return threads.all().stream().map(TaskThread::toString).toList();
        } finally {
            lock.unlock();
        }
    }

    /// @throws IllegalStateException with the invariant that does not hold
    void check() {
        lock.lock();
        try {
            threads.check();
            long expected = threads.all().stream()
                    .filter(thread -> thread.contends || thread.awaitsTurn)
                    .count();
            if (waiting.get() != expected) {
                throw new IllegalStateException(waiting + " are said to wait, " + expected + " do: " + threads.all());
            }
        } finally {
            lock.unlock();
        }
    }
}
