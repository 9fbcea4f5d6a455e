package io.cistern.internal.leaks;

import java.lang.StackWalker.StackFrame;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// Who asked for a block, when, and for which stream.
public final class Site {
    private static final int FEW_FRAMES = 8;

    private static final StackWalker WALKER = StackWalker.getInstance();

    /// The framework's own calls on the way to an allocator, which say nothing to its user.
    private static final Set<String> OWN = Set.of(
            "io.cistern.Allocator",
            "io.cistern.Allocators",
            "io.cistern.DeviceBuffer",
            "io.cistern.DeviceMemory",
            "io.cistern.MemoryPool");

    private static final String OWN_PACKAGES = "io.cistern.internal.";

    private final long stream;
    private final long madeAtNanos = System.nanoTime();
    private final List<StackFrame> frames;
    private final Optional<String> thread;
    private volatile boolean unreachable;

    private Site(long stream, List<StackFrame> frames, Optional<String> thread) {
        this.stream = stream;
        this.frames = frames;
        this.thread = thread;
    }

    /// The calling code.
    static Site here(boolean whole, long stream) {
        int most = whole ? Integer.MAX_VALUE : FEW_FRAMES;
        List<StackFrame> frames =
                WALKER.walk(stack -> stack.dropWhile(Site::isOwn).limit(most).toList());
        return new Site(
                stream, frames, whole ? Optional.of(Thread.currentThread().getName()) : Optional.empty());
    }

    private static boolean isOwn(StackFrame frame) {
        String name = frame.getClassName();
        return name.startsWith(OWN_PACKAGES) || OWN.contains(name);
    }

    /// The stream the block was made for.
    public long stream() {
        return stream;
    }

    /// How long ago it was made.
    public Duration age() {
        return Duration.ofNanos(System.nanoTime() - madeAtNanos);
    }

    /// The frames, the innermost first.
    public List<StackTraceElement> frames() {
        return frames.stream().map(StackFrame::toStackTraceElement).toList();
    }

    /// The thread's name, where it was kept.
    public Optional<String> thread() {
        return thread;
    }

    /// Says that the buffer of the block was dropped.
    public void becameUnreachable() {
        unreachable = true;
    }

    /// Whether the buffer of the block was dropped.
    public boolean isUnreachable() {
        return unreachable;
    }
}
