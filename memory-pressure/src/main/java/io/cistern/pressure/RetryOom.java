package io.cistern.pressure;

import java.io.Serial;

/// Tells a task to free the memory that it has allocated since it began its piece of work, make its
/// inputs spillable, [wait][#blockUntilReady], and begin again. The arbiter throws it when all tasks
/// wait, to the least important of the blocked tasks that hold memory; if none holds memory, to the
/// least important of all blocked tasks.
public final class RetryOom extends TaskOom {
    @Serial
    private static final long serialVersionUID = 1L;

    RetryOom(TaskThread thread, Refusal refusal) {
        super(thread, refusal, "free what it allocated, call blockUntilReady(), and try again", "");
    }

    /// Waits until this thread's turn comes again. Returns at once if the turn has already come, or if a
    /// test [forced][Task#forceRetries] the error. If the thread is interrupted, the method returns
    /// early, and the thread stays interrupted.
    ///
    /// @throws IllegalStateException if the calling thread is not the one that got this error
    public void blockUntilReady() {
        thread().blockUntilReady();
    }
}
