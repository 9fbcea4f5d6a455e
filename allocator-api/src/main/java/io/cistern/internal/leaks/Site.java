package io.cistern.internal.leaks;

import java.io.Serial;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// Who asked for a block, when, and for which stream.
///
/// The stack is kept as an exception keeps it, and turned into text when somebody asks: with 30 frames that is a
/// quarter of the time of a [StackWalker], which must resolve each frame at once, even where it looks at 8 only.
public final class Site {
    private static final int FEW_FRAMES = 8;

    /// The framework's own calls on the way to an allocator, which say nothing to its user.
    private static final Set<String> OWN = Set.of(
            "io.cistern.Allocator",
            "io.cistern.Allocators",
            "io.cistern.DeviceArena",
            "io.cistern.DeviceBuffer",
            "io.cistern.DeviceMemory",
            "io.cistern.ForeignMemory",
            "io.cistern.MemoryPool");

    private static final String OWN_PACKAGES = "io.cistern.internal.";

    private final long stream;
    private final long madeAtNanos = System.nanoTime();
    private final Stack stack = new Stack();
    private final int mostFrames;
    private final Optional<String> thread;
    private volatile boolean unreachable;

    private static final class Stack extends Throwable {
        @Serial
        private static final long serialVersionUID = 1L;

        Stack() {
            super(null, null, false, true);
        }
    }

    private Site(long stream, int mostFrames, Optional<String> thread) {
        this.stream = stream;
        this.mostFrames = mostFrames;
        this.thread = thread;
    }

    /// The calling code.
    static Site here(boolean whole, long stream) {
        return whole
                ? new Site(
                        stream,
                        Integer.MAX_VALUE,
                        Optional.of(Thread.currentThread().getName()))
                : new Site(stream, FEW_FRAMES, Optional.empty());
    }

    private static boolean isOwn(StackTraceElement frame) {
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
        return Arrays.stream(stack.getStackTrace())
                .dropWhile(Site::isOwn)
                .limit(mostFrames)
                .toList();
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
