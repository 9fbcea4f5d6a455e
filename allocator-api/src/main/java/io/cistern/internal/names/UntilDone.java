package io.cistern.internal.names;

import java.util.concurrent.atomic.AtomicBoolean;

/// An action that runs once. If it throws, the next call runs it again.
///
/// **Threads.** Any; a call while another thread runs the action does nothing.
public final class UntilDone {
    private final AtomicBoolean done = new AtomicBoolean();

    public void run(Runnable action) {
        if (done.getAndSet(true)) {
            return;
        }
        boolean succeeded = false;
        try {
            action.run();
            succeeded = true;
        } finally {
            done.set(succeeded);
        }
    }

    /// Returns whether the action has run, or is running.
    public boolean isDone() {
        return done.get();
    }
}
