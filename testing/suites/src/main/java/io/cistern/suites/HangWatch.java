package io.cistern.suites;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Ends the waiting of a thread that waits for what it alone could let go: a driver call that waits for running work
/// while a kernel holds a stream. Such a thread would wait for ever, and nobody would learn where.
final class HangWatch implements AutoCloseable {
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(
            Thread.ofPlatform().daemon().name("hang watch").factory());
    private final Duration patience;
    private final Runnable letGo;
    private volatile @Nullable String found;

    /// @param patience how long something may take
    /// @param letGo what ends the waiting; called by another thread
    HangWatch(Duration patience, Runnable letGo) {
        this.patience = patience;
        this.letGo = letGo;
    }

    /// Does something on the calling thread.
    ///
    /// @throws AssertionError with where the thread was, if it took longer than the patience
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
