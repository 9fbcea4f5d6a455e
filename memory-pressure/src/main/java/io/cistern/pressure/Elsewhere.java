package io.cistern.pressure;

import java.time.Duration;
import java.util.Arrays;
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
/// Looking costs about a microsecond a thread; it is done by threads that have nothing else to do.
final class Elsewhere {
    private static final String[] DRIVERS = {"io.cistern.cuda.", "io.cistern.simulated."};

    private final ReentrantLock lock;
    private final long patienceNanos;

    /// @param patience how long a thread must have been seen waiting
    Elsewhere(ReentrantLock lock, Duration patience) {
        this.lock = lock;
        this.patienceNanos = patience.toNanos();
    }

    /// Looks at a thread; the caller holds the lock.
    boolean waits(TaskThread task) {
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
