package io.cistern.async.sharing;

import io.cistern.cuda.DeadContext;
import java.util.ArrayDeque;
import java.util.Deque;

/// Undoes the steps of an operation that failed on the way, the last step first.
final class Rollback {
    private final Deque<Runnable> steps = new ArrayDeque<>();

    void later(Runnable step) {
        steps.push(step);
    }

    /// Undoes all steps; one that the driver refuses is tried a few times. Their failures are added to the first
    /// failure as suppressed.
    ///
    /// @return the failure, for `throw`; an [Error] is thrown here
    RuntimeException after(Throwable failure) {
        for (Runnable step : steps) {
            try {
                DeadContext.insist(step);
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
