package io.cistern.internal.leaks;

import io.cistern.internal.names.CallStack;
import io.cistern.internal.names.ThreadNames;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/// Records which code asked for a block, when, and for which stream.
public final class Site {
    private static final int FEW_FRAMES = 8;

    private final long stream;
    private final long madeAtNanos = System.nanoTime();
    private final CallStack stack;
    private final Optional<String> thread;
    private volatile boolean unreachable;

    /// Records the calling code.
    ///
    /// @param whole whether to keep the whole stack and the thread's name
    Site(boolean whole, long stream) {
        this.stream = stream;
        this.stack = new CallStack(whole ? Integer.MAX_VALUE : FEW_FRAMES);
        this.thread = whole ? Optional.of(ThreadNames.ofCaller()) : Optional.empty();
    }

    /// Returns the stream that the block was allocated for.
    public long stream() {
        return stream;
    }

    /// Returns how long ago the block was allocated.
    public Duration age() {
        return Duration.ofNanos(System.nanoTime() - madeAtNanos);
    }

    /// Returns the frames, the innermost first.
    public List<StackTraceElement> frames() {
        return stack.frames();
    }

    /// Returns the thread's name, if it was kept.
    public Optional<String> thread() {
        return thread;
    }

    /// Notes that the buffer of the block was dropped.
    public void becameUnreachable() {
        unreachable = true;
    }

    /// Returns whether the buffer of the block was dropped.
    public boolean isUnreachable() {
        return unreachable;
    }
}
