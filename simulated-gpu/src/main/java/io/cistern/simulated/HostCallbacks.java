package io.cistern.simulated;

import io.cistern.simulated.internal.stream.Gate;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// Runs host functions one after the other on a thread of its own, as the driver does.
///
/// The thread also keeps time going: while host functions are outstanding and the program makes no driver call,
/// the work before them still runs, as it would on hardware. The thread ends when nothing was outstanding for a
/// while.
final class HostCallbacks implements AutoCloseable {
    /// How long the program may be silent before the clock moves on without it.
    private static final long SILENCE_MILLIS = 1;

    /// How long the thread waits for the next host function: to start a thread costs more than most of them.
    private static final long LINGER_MILLIS = 50;

    private final Machine machine;
    private final Deque<Task> ready = new ArrayDeque<>();
    private final AtomicInteger outstanding = new AtomicInteger();
    private @Nullable Thread thread;
    private boolean closed;

    HostCallbacks(Machine machine) {
        this.machine = machine;
    }

    /// Returns a gate that stays closed until the function has returned.
    Gate gateFor(Runnable function) {
        outstanding.incrementAndGet();
        return new Task(function);
    }

    /// Makes sure that the thread runs while host functions are outstanding.
    synchronized void start() {
        if (thread == null && !closed) {
            thread =
                    Thread.ofPlatform().daemon().name("simulated-gpu-callbacks").start(this::serve);
        } else {
            notifyAll();
        }
    }

    /// Waits until there is something to do, or some time has passed. The caller holds the lock of this.
    @SuppressWarnings("WaitNotInLoop") // the caller checks again, whatever woke it
    private void pause(long millis) {
        try {
            wait(millis);
        } catch (InterruptedException e) {
            // Nobody interrupts this thread on purpose; the next round checks whether to end.
        }
    }

    private void serve() {
        long lastSeen = -1;
        while (true) {
            Task task;
            synchronized (this) {
                task = ready.poll();
                if (task == null && outstanding.get() == 0) {
                    pause(LINGER_MILLIS);
                }
                if (task == null && (closed || outstanding.get() == 0)) {
                    thread = null;
                    return;
                }
            }
            if (task != null) {
                task.run();
                machine.gateOpened();
            } else {
                lastSeen = keepTimeGoing(lastSeen);
            }
        }
    }

    private long keepTimeGoing(long lastSeen) {
        synchronized (this) {
            if (!ready.isEmpty()) {
                return lastSeen;
            }
            pause(SILENCE_MILLIS);
        }
        return machine.locked(() -> {
            long now = machine.engine.nanos();
            if (now == lastSeen) {
                machine.engine.step();
            }
            return machine.engine.nanos();
        });
    }

    @Override
    public synchronized void close() {
        closed = true;
        notifyAll();
    }

    private final class Task implements Gate {
        private final Runnable function;
        private volatile boolean ended;

        Task(Runnable function) {
            this.function = function;
        }

        @Override
        public void begin() {
            synchronized (HostCallbacks.this) {
                ready.add(this);
                HostCallbacks.this.notifyAll();
            }
        }

        @Override
        public boolean isClosed() {
            return !ended;
        }

        void run() {
            try {
                function.run();
            } catch (Throwable swallowed) {
                // The contract of host functions: exceptions are swallowed.
            } finally {
                outstanding.decrementAndGet();
                ended = true;
            }
        }
    }
}
