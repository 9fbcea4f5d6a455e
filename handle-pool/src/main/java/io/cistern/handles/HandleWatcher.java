package io.cistern.handles;

import java.lang.System.Logger.Level;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Runs a pool's thread, which checks every 20 ms for threads that have ended and for handles that were idle
/// too long. It runs from the first handle until the pool is closed.
///
/// **Threads.** Any.
final class HandleWatcher {
    private static final long INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private final String name;
    private final Runnable look;
    private volatile @Nullable Thread thread;
    private volatile boolean stopped;

    /// @param name the library's name
    HandleWatcher(String name, Runnable look) {
        this.name = name;
        this.look = look;
    }

    void start() {
        if (thread == null) {
            startOnce();
        }
    }

    private synchronized void startOnce() {
        if (thread == null && !stopped) {
            thread =
                    Thread.ofPlatform().daemon().name("cistern-handles-" + name).start(this::run);
        }
    }

    private void run() {
        while (!stopped) {
            LockSupport.parkNanos(INTERVAL_NANOS);
            try {
                look.run();
            } catch (RuntimeException | Error failure) {
                log(failure);
            }
        }
    }

    private void log(Throwable failure) {
        try {
            System.getLogger(HandleWatcher.class.getName())
                    .log(Level.WARNING, "looking after handles of " + name + " failed; it goes on", failure);
        } catch (OutOfMemoryError ofTheHeap) {
            // There is no Java heap to report it with.
        }
    }

    /// Ends the thread, and waits until it has finished its present check.
    void stop() {
        Thread ending = stopped();
        if (ending != null && !ending.equals(Thread.currentThread())) {
            LockSupport.unpark(ending);
            join(ending);
        }
    }

    private synchronized @Nullable Thread stopped() {
        stopped = true;
        return thread;
    }

    private static void join(Thread ending) {
        boolean interrupted = false;
        while (ending.isAlive()) {
            try {
                ending.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
