package io.cistern.suites;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Rescues a thread that waits for itself: it makes a driver call that waits for running work while it holds a
/// stream by a kernel. Without this watch the thread would wait for ever, and nobody would learn where.
final class HangWatch implements AutoCloseable {
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(
            Thread.ofPlatform().daemon().name("hang watch").factory());
    private final Duration patience;
    private final Runnable letGo;
    private volatile @Nullable String found;

    /// @param patience how long a call may take
    /// @param letGo releases the held streams; another thread calls it
    HangWatch(Duration patience, Runnable letGo) {
        this.patience = patience;
        this.letGo = letGo;
    }

    /// Runs something on the calling thread.
    ///
    /// @throws AssertionError with the thread's stack, if it took longer than the patience
    void run(Runnable something) {
        Thread watched = Thread.currentThread();
        Future<?> end = timer.schedule(() -> end(watched), patience.toMillis(), TimeUnit.MILLISECONDS);
        try {
            something.run();
        } finally {
            end.cancel(false);
        }
        if (found != null) {
            throw new AssertionError(found);
        }
    }

    private void end(Thread watched) {
        found = "the host waited for what it held, for " + patience.toSeconds() + " s, at "
                + Arrays.stream(watched.getStackTrace()).map(String::valueOf).collect(Collectors.joining("\n    at "));
        letGo.run();
    }

    @Override
    public void close() {
        timer.shutdownNow();
    }
}
