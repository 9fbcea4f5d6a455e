package io.cistern.pressure;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;

/// Detects threads that wait for something other than the arbiter: a lock, a future, a queue. If they wait
/// for another task, and that task waits for memory, they are part of a deadlock that no lock detects. If
/// they wait for something else, such as a network, they will go on and may free what their task holds. The
/// object of a wait can't be seen, so there are two bounds on how long a thread is seen waiting and doing
/// nothing else:
///
/// - After the *patience* it counts as waiting ([#allWait]), so another thread may have to roll back and repeat its
///   work.
/// - Until the *longest wait* it may still free what its task holds ([#mayFree]), so no other task has to split
///   its input, which fails for good if the input can't be split.
///
/// It does not count as waiting if:
///
/// - it waits with a timeout ([Thread.State#TIMED_WAITING]), after which it goes on by itself;
/// - it waits in the driver, for the device, which waits for no task;
/// - it is about to enter the arbiter;
/// - the program says that the wait is for [no task][TaskArbiter#outside].
///
/// Only threads that have nothing else to do make the look, but they hold the lock during it. So looks are spaced
/// to take at most an eleventh of the time, however many threads there are.
final class BlockedThreadDetector {
    /// The pause between looks, as a multiple of how long the last look took.
    private static final int LOOKS_APART = 10;

    private static final String[] DRIVERS = {"io.cistern.cuda.", "io.cistern.simulated."};

    private final ReentrantLock lock;
    private final long patienceNanos;
    private final long longestWaitNanos;
    private final Predicate<TaskThread> goesOn = this::goesOn;
    private final Predicate<TaskThread> mayFree = this::mayFree;

    /// The earliest time of the next look. Guarded by the lock.
    private long nextLookNanos = System.nanoTime();

    BlockedThreadDetector(ReentrantLock lock, Duration patience, Duration longestWait) {
        this.lock = lock;
        this.patienceNanos = TimeUnit.NANOSECONDS.convert(patience);
        this.longestWaitNanos = TimeUnit.NANOSECONDS.convert(longestWait);
    }

    /// Looks at all threads that do not wait in the arbiter, and notes which of them wait elsewhere from now
    /// on. The caller holds the lock.
    ///
    /// @return whether all threads wait; false if it is too early to look again
    boolean allWait(TaskThreads threads) {
        long begun = System.nanoTime();
        if (begun - nextLookNanos < 0) {
            return false;
        }
        boolean all = threads.count(goesOn) == 0; // each thread is looked at
        long ended = System.nanoTime();
        nextLookNanos = ended + LOOKS_APART * (ended - begun);
        return all;
    }

    /// Returns whether a thread that was seen waiting elsewhere may still go on and free memory of a task other
    /// than this one. The caller holds the lock.
    boolean mayFree(TaskThreads threads, Task than) {
        return threads.anyOfOthers(than, mayFree);
    }

    private boolean mayFree(TaskThread thread) {
        return !thread.state.waits()
                && thread.task.heldBytes() > 0
                && (thread.waitsElsewhereSince == 0 || waitsElsewhereNanos(thread) < longestWaitNanos);
    }

    private boolean goesOn(TaskThread thread) {
        return !thread.state.waits() && !waits(thread);
    }

    private boolean waits(TaskThread thread) {
        if (thread.isOutside || !isParked(thread.thread)) {
            thread.waitsElsewhereSince = 0;
            return false;
        }
        if (thread.waitsElsewhereSince == 0) {
            long now = System.nanoTime();
            thread.waitsElsewhereSince = now == 0 ? 1 : now;
            return false;
        }
        return waitsElsewhereNanos(thread) >= patienceNanos && !isInDriver(thread.thread);
    }

    private static long waitsElsewhereNanos(TaskThread thread) {
        return System.nanoTime() - thread.waitsElsewhereSince;
    }

    private boolean isParked(Thread thread) {
        Thread.State state = thread.getState();
        return (state == Thread.State.WAITING || state == Thread.State.BLOCKED) && !lock.hasQueuedThread(thread);
    }

    private static boolean isInDriver(Thread thread) {
        for (StackTraceElement frame : thread.getStackTrace()) {
            for (String driver : DRIVERS) {
                if (frame.getClassName().startsWith(driver)) {
                    return true;
                }
            }
        }
        return false;
    }
}
