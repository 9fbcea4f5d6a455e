package io.cistern.pressure;

import java.io.Serial;

/// Tells a task to free the memory that it has allocated since it began its piece of work, make its inputs
/// spillable, [wait][#blockUntilReady], and begin again. It is thrown if all tasks wait, and this one is
/// the least important of the blocked tasks that hold memory (of all blocked tasks, if none holds memory).
public final class RetryOom extends TaskOom {
    @Serial
    private static final long serialVersionUID = 1L;

    RetryOom(TaskThread thread, Refusal refusal) {
        super(thread, refusal, "free what it allocated, call blockUntilReady(), and try again", "");
    }

    /// Waits until it is this thread's turn again. Returns at once if it already is, or if a test
    /// [forced][Task#forceRetries] the error. If the thread is interrupted, the method returns early and
    /// keeps the interrupt.
    ///
    /// @throws IllegalStateException if the calling thread is not the one that got this error
    public void blockUntilReady() {
        thread().blockUntilReady();
    }
}
