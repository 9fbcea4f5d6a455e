package io.cistern.loader;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/// Calls third-party code, which may never return, on a thread of its own. If the code hangs, the program
/// loses the timeout and a daemon thread, which is interrupted and abandoned. An interrupt of the calling
/// thread does not end its wait, and stays pending.
///
/// @param longest the longest wait for an answer
record ProbeTimeout(Duration longest) {
    /// Much longer than any availability check that asks a driver or looks for a file.
    static final ProbeTimeout USUAL = new ProbeTimeout(Duration.ofSeconds(10));

    <T extends @Nullable Object> T ask(String who, Callable<T> question) throws TimeoutException {
        FutureTask<T> task = new FutureTask<>(question);
        Thread.ofPlatform().daemon().name("cistern-asks-" + who).start(task);
        long end = System.nanoTime() + longest.toNanos();
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return task.get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } catch (TimeoutException e) {
            task.cancel(true);
            throw e;
        } catch (ExecutionException e) {
            throw passedOn(Objects.requireNonNull(e.getCause()));
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static <X extends Throwable> RuntimeException passedOn(Throwable thrown) throws X {
        @SuppressWarnings("unchecked")
        X asItIs = (X) thrown;
        throw asItIs;
    }

    String exhausted(String call) {
        return "does not answer " + call + " within " + longest.toMillis() / 1000.0 + " s";
    }
}
