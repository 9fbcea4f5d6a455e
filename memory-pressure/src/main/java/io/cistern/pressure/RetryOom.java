package io.cistern.pressure;

import java.io.Serial;

/// The task shall free what it made since it began its piece of work, make its inputs spillable,
/// [wait][#blockUntilReady], and begin again: all tasks were waiting for memory, and it is the one of the lowest
/// priority.
public final class RetryOom extends TaskOom {
    @Serial
    private static final long serialVersionUID = 1L;

    RetryOom(TaskThread thread, Refusal refusal) {
        super(thread, refusal, "free what it made, call blockUntilReady(), and try again");
    }

    /// Waits until it is this thread's turn again. Returns at once if that is so already, or for an error
    /// that was [forced][Task#forceRetries]; early, with the interrupt kept, if the thread is interrupted.
    ///
    /// @throws IllegalStateException on another thread than the one that got this error
    public void blockUntilReady() {
        thread().blockUntilReady();
    }
}
