package io.cistern.internal.names;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/// Steps that close something, each taken even if others failed. If a capture forbids one, the run throws
/// the driver's refusal, and the next run resumes with that step. A run needs no Java heap, since failed
/// steps are not retried.
public final class ClosingSteps implements Runnable {
    private final Failures failures = new Failures();
    private final Deque<Runnable> left;

    public ClosingSteps(Runnable... steps) {
        this.left = new ArrayDeque<>(List.of(steps));
    }

    /// Adds a step that comes before all others.
    public void addFirst(Runnable step) {
        left.addFirst(step);
    }

    /// Takes the remaining steps.
    ///
    /// @throws RuntimeException the first failure, with the others suppressed in it
    @Override
    public void run() {
        while (!left.isEmpty()) {
            failures.gatherUnlessCaptured(left.getFirst());
            left.removeFirst();
        }
        failures.rethrow();
    }
}
