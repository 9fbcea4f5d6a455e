package io.cistern.simulated;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// Runs host functions on a thread of their own, as the driver does, one after the other.
///
/// The thread also keeps time going: while host functions are outstanding and the program makes no driver call, the
/// work in front of them still runs, as it would on hardware. It ends when nothing was outstanding for a while.
final class HostCallbacks implements AutoCloseable {
    /// How long the program may be silent before the clock moves on without it.
    private static final long SILENCE_MILLIS = 1;

    /// How long the thread stays for the next host function: to start one costs more than most of them.
    private static final long LINGER_MILLIS = 50;

    private final Machine machine;
    private final Deque<Task> ready = new ArrayDeque<>();
    private final AtomicInteger outstanding = new AtomicInteger();
    private @Nullable Thread thread;
    private boolean closed;

    HostCallbacks(Machine machine) {
        this.machine = machine;
    }

    /// A gate that stays closed until the function has returned.
    Gate gateFor(Runnable function) {
        outstanding.incrementAndGet();
        return new Task(function);
    }

    /// Makes sure somebody looks after the host functions that are outstanding.
    synchronized void start() {
        if (thread == null && !closed) {
            thread =
                    Thread.ofPlatform().daemon().name("simulated-gpu-callbacks").start(this::serve);
        } else {
            notifyAll();
        }
    }

    /// Until something is to be done, or some time has passed. Holding the lock of this.
    @SuppressWarnings("WaitNotInLoop") // who calls it looks again whatever woke it
    private void pause(long millis) {
        try {
            wait(millis);
        } catch (InterruptedException e) {
            // Nobody interrupts this thread on purpose; the next round looks whether to end.
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
            long now = machine.clock().nanos();
            if (now == lastSeen) {
                machine.engine().step();
            }
            return machine.clock().nanos();
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
                // The contract of host functions: what they throw is swallowed.
            } finally {
                outstanding.decrementAndGet();
                ended = true;
            }
        }
    }
}
