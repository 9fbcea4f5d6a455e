package io.cistern.pressure;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.concurrent.locks.ReentrantLock;

/// Detects threads that wait for something other than the arbiter: a lock, a future, a queue. If they wait for
/// another task, and that task waits for memory, they are part of a deadlock that no lock knows of.
///
/// The object of a wait can't be seen. So a thread counts as waiting if it was seen waiting, and doing nothing
/// else, for some time, except in these cases:
///
/// - it waits with a timeout ([Thread.State#TIMED_WAITING]), after which it goes on by itself;
/// - it waits in the driver, for the device, which needs no task;
/// - it is about to enter the arbiter;
/// - the program says that the wait is for [no task][TaskArbiter#outside].
///
/// Threads that have nothing else to do make the look, but they hold the lock during it. So looks are spaced to
/// take at most an eleventh of the time, however many threads there are.
final class BlockedThreadDetector {
    /// The pause between looks, in durations of the last look.
    private static final int LOOKS_APART = 10;

    private static final String[] DRIVERS = {"io.cistern.cuda.", "io.cistern.simulated."};

    private final ReentrantLock lock;
    private final long patienceNanos;

    /// The earliest time of the next look. Guarded by the lock.
    private long nextLookNanos = System.nanoTime();

    /// @param patience how long a thread must have been seen waiting before it counts
    BlockedThreadDetector(ReentrantLock lock, Duration patience) {
        this.lock = lock;
        this.patienceNanos = patience.toNanos();
    }

    /// Looks at all threads that do not wait in the arbiter, and notes which of them wait elsewhere from now
    /// on. The caller holds the lock.
    ///
    /// @return whether all threads wait; false if it is too early to look again
    boolean allWait(Collection<TaskThread> threads) {
        long begun = System.nanoTime();
        if (begun - nextLookNanos < 0) {
            return false;
        }
        boolean all = true;
        for (TaskThread thread : threads) {
            if (!thread.state.waits() && !waits(thread)) {
                all = false;
            }
        }
        long ended = System.nanoTime();
        nextLookNanos = ended + LOOKS_APART * (ended - begun);
        return all;
    }

    private boolean waits(TaskThread task) {
        if (task.isOutside || !isParked(task.thread)) {
            task.waitsElsewhereSince = 0;
            return false;
        }
        long now = System.nanoTime();
        if (task.waitsElsewhereSince == 0) {
            task.waitsElsewhereSince = now == 0 ? 1 : now;
            return false;
        }
        return now - task.waitsElsewhereSince >= patienceNanos && !isInDriver(task.thread);
    }

    private boolean isParked(Thread thread) {
        Thread.State state = thread.getState();
        return (state == Thread.State.WAITING || state == Thread.State.BLOCKED) && !lock.hasQueuedThread(thread);
    }

    private static boolean isInDriver(Thread thread) {
        return Arrays.stream(thread.getStackTrace())
                .map(StackTraceElement::getClassName)
                .anyMatch(name -> Arrays.stream(DRIVERS).anyMatch(name::startsWith));
    }
}
