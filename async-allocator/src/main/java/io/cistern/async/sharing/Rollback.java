package io.cistern.async.sharing;

import java.util.ArrayDeque;
import java.util.Deque;

/// What takes back the steps of something that failed on the way, the last step first.
final class Rollback {
    private final Deque<Runnable> steps = new ArrayDeque<>();

    void later(Runnable step) {
        steps.push(step);
    }

    /// Takes all back. What fails on the way is told with the failure.
    ///
    /// @return never; for `throw`
    RuntimeException after(Throwable failure) {
        for (Runnable step : steps) {
            try {
                step.run();
            } catch (RuntimeException further) {
                failure.addSuppressed(further);
            }
        }
        if (failure instanceof Error error) {
            throw error;
        }
        return (RuntimeException) failure;
    }
}
