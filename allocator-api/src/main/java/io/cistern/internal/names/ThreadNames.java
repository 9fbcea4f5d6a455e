package io.cistern.internal.names;

/// Names threads in messages: virtual threads have no name of their own, as a rule.
public final class ThreadNames {
    private ThreadNames() {}

    /// Returns the name of a thread; its number, `#42`, if it has none.
    public static String of(Thread thread) {
        return thread.getName().isEmpty() ? "#" + thread.threadId() : thread.getName();
    }

    /// Returns the name of the calling thread.
    public static String ofCaller() {
        return of(Thread.currentThread());
    }
}
