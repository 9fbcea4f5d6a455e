package io.cistern.simulated;

import io.cistern.simulated.internal.stream.Gate;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/// Runs host functions one after the other on a thread of its own, as the driver does.
///
/// The thread also keeps virtual time moving: while host functions are outstanding and the program makes no
/// driver call, the work before them still runs, as it would on hardware. The thread ends after a while
/// with nothing outstanding.
final class HostCallbacks implements AutoCloseable {
    /// How long the program may be silent before the clock moves on without it.
    private static final long SILENCE_MILLIS = 1;

    /// How long the thread waits for the next host function: starting a thread costs more than most of
    /// them.
    private static final long LINGER_MILLIS = 50;

    private final Machine machine;
    private final ScheduledThreadPoolExecutor thread = new ScheduledThreadPoolExecutor(
            1,
            Thread.ofPlatform()
                    .daemon()
                    .inheritInheritableThreadLocals(false) // nor the caller's class loader
                    .name("simulated-gpu-callbacks")
                    .factory(),
            new ThreadPoolExecutor.DiscardPolicy()); // after the machine has closed
    private final AtomicInteger outstanding = new AtomicInteger();
    private final AtomicBoolean keepsTime = new AtomicBoolean();

    /// The virtual time at the last check. Only the thread accesses it.
    private long lastSeen = -1;

    HostCallbacks(Machine machine) {
        this.machine = machine;
        thread.setKeepAliveTime(LINGER_MILLIS, TimeUnit.MILLISECONDS);
        thread.allowCoreThreadTimeOut(true);
        thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    /// Returns a gate that stays closed until the function has returned.
    Gate gateFor(Runnable function) {
        outstanding.incrementAndGet();
        return new Task(function);
    }

    /// Keeps virtual time moving while host functions are outstanding.
    void start() {
        if (keepsTime.compareAndSet(false, true)) {
            keepTimeGoingLater();
        }
    }

    private void keepTimeGoingLater() {
        var _ = thread.schedule(this::keepTimeGoing, SILENCE_MILLIS, TimeUnit.MILLISECONDS);
    }

    private void keepTimeGoing() {
        if (outstanding.get() == 0) {
            keepsTime.set(false);
            if (outstanding.get() != 0) { // another thread added a function before the flag was cleared
                start();
            }
            return;
        }
        lastSeen = machine.locked(() -> {
            long now = machine.engine.nanos();
            if (now == lastSeen) {
                machine.engine.step();
            }
            return machine.engine.nanos();
        });
        keepTimeGoingLater();
    }

    @Override
    public void close() {
        thread.shutdown();
    }

    private final class Task implements Gate {
        private final Runnable function;
        private volatile boolean ended;

        Task(Runnable function) {
            this.function = function;
        }

        @Override
        public void begin() {
            thread.execute(this::run);
        }

        @Override
        public boolean isClosed() {
            return !ended;
        }

        private void run() {
            try {
                function.run();
            } catch (Throwable swallowed) {
                // The contract of host functions: exceptions are swallowed.
            } finally {
                outstanding.decrementAndGet();
                ended = true;
            }
            machine.gateOpened();
        }
    }
}
