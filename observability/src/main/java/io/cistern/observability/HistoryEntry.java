package io.cistern.observability;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.internal.names.CallStack;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// One event that a [MemoryHistory] recorded, with its time, thread and call site.
///
/// **Threads.** Any.
public final class HistoryEntry {
    /// Frames further out usually belong to the program's frameworks.
    static final int MAX_FRAMES = 64;

    private final long nanos;
    private final long threadId;
    private final String threadName;
    private final MemoryEvent event;
    private final @Nullable CallStack stack;
    private final @Nullable String text;

    HistoryEntry(long nanos, Thread thread, MemoryEvent event, @Nullable CallStack stack, @Nullable String text) {
        this.text = text;
        this.nanos = nanos;
        this.threadId = thread.threadId();
        this.threadName = thread.getName();
        this.event = event;
        this.stack = stack;
    }

    /// Returns the time of the event on the clock of [System#nanoTime].
    public long nanos() {
        return nanos;
    }

    /// Returns the event itself.
    public MemoryEvent event() {
        return event;
    }

    /// Returns the name of the thread that caused the event, or `#` and the thread's id if it has no name.
    public String thread() {
        return threadName.isEmpty() ? "#" + threadId : threadName;
    }

    /// Returns the text that the thread had [set][MemoryHistory#text] before the event; empty if it had set
    /// none.
    public String text() {
        return text == null ? "" : text;
    }

    /// Returns the call stack of the event in the program, innermost frame first; empty if stacks are not
    /// recorded.
    public List<StackTraceElement> site() {
        return stack == null ? List.of() : stack.frames();
    }

    /// Returns time, thread and event as one line for logs.
    @Override
    public String toString() {
        return nanos + " " + thread() + " " + event;
    }
}
