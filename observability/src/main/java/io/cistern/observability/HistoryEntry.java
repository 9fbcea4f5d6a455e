package io.cistern.observability;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.internal.names.CallStack;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// One event of a [MemoryHistory].
///
/// **Threads.** Any.
public final class HistoryEntry {
    /// Deeper frames are of the program's frameworks as a rule.
    private static final int MAX_FRAMES = 64;

    private final long nanos;
    private final long threadId;
    private final String threadName;
    private final MemoryEvent event;
    private final @Nullable CallStack stack;

    HistoryEntry(long nanos, Thread thread, MemoryEvent event, @Nullable CallStack stack) {
        this.nanos = nanos;
        this.threadId = thread.threadId();
        this.threadName = thread.getName();
        this.event = event;
        this.stack = stack;
    }

    /// Returns when it happened, as [System#nanoTime] tells the time.
    public long nanos() {
        return nanos;
    }

    /// Returns what happened.
    public MemoryEvent event() {
        return event;
    }

    /// Returns the name of the thread on which it happened; `#` and its number if it has no name.
    public String thread() {
        return threadName.isEmpty() ? "#" + threadId : threadName;
    }

    /// Returns the place in the program, the innermost frame first; empty if stacks are not recorded.
    public List<StackTraceElement> site() {
        return stack == null ? List.of() : stack.frames(MAX_FRAMES);
    }

    /// Returns time, thread and event, for people and logs.
    @Override
    public String toString() {
        return nanos + " " + thread() + " " + event;
    }
}
