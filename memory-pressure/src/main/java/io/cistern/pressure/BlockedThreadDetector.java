package io.cistern.pressure;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.concurrent.locks.ReentrantLock;

/// Tells which threads wait for something that is not the arbiter: a lock, a future, a queue. If it is another
/// task that they wait for, and that waits for memory, they are part of a deadlock that no lock knows of.
///
/// What a thread waits for can't be seen. So it counts as waiting once it was seen to do so, and nothing else,
/// for some time, and unless
///
/// - it waits with a timeout ([Thread.State#TIMED_WAITING]), after which it goes on by itself;
/// - it waits in the driver: for the device, which needs no task;
/// - it is about to enter the arbiter;
/// - the program says that [no task][TaskArbiter#outside] is needed.
///
/// Looking costs about a microsecond a thread, and some tens for one that waits for long. It is done by
/// threads that have nothing else to do, but under the lock: so at most an eleventh of the time, however many
/// threads there are.
final class BlockedThreadDetector {
    /// In times of the last look.
    private static final int LOOKS_APART = 10;

    private static final String[] DRIVERS = {"io.cistern.cuda.", "io.cistern.simulated."};

    private final ReentrantLock lock;
    private final long patienceNanos;

    /// No look begins before. Guarded by the lock.
    private long nextLookNanos = System.nanoTime();

    /// @param patience how long a thread must have been seen waiting
    BlockedThreadDetector(ReentrantLock lock, Duration patience) {
        this.lock = lock;
        this.patienceNanos = patience.toNanos();
    }

    /// Looks at all threads that the arbiter does not let wait, so that those that wait elsewhere are seen to
    /// from now on; the caller holds the lock.
    ///
    /// @return whether they all do; false if it is too soon to look again
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
