package io.cistern.internal.names;

import java.io.Serial;
import java.util.Arrays;
import java.util.List;

/// The calling thread's stack. It is captured as in an exception, and resolved into frames on demand. That
/// is faster than a [StackWalker], which must resolve each frame at once, even if it visits only a few.
///
/// **Threads.** Any.
public final class CallStack {
    /// Prefixes of the JDK's classes that run a scope's body.
    private static final List<String> OF_SCOPES =
            List.of("java.lang.ScopedValue", "jdk.internal.vm.ScopedValueContainer");

    private sealed interface Stack {}

    private static final class Unread extends Throwable implements Stack {
        @Serial
        private static final long serialVersionUID = 1L;

        Unread() {
            super(null, null, false, true);
        }
    }

    private record Frames(List<StackTraceElement> all) implements Stack {}

    private final int mostFrames;

    /// [Unread] until the first read, then only the frames: with the resolved stack, the exception takes
    /// several times the memory. Concurrent readers resolve it to equal frames.
    private Stack stack = new Unread();

    /// @param mostFrames the most frames to return
    public CallStack(int mostFrames) {
        this.mostFrames = mostFrames;
    }

    /// Returns the frames of the program, the innermost first, without those that run the bodies of scopes.
    public List<StackTraceElement> frames() {
        return switch (stack) {
            case Frames(List<StackTraceElement> all) -> all;
            case Unread unread -> resolved(unread);
        };
    }

    private List<StackTraceElement> resolved(Unread unread) {
        List<StackTraceElement> all = Arrays.stream(unread.getStackTrace())
                .filter(frame -> !FrameworkFrames.contains(frame.getClassName())
                        && OF_SCOPES.stream().noneMatch(frame.getClassName()::startsWith))
                .limit(mostFrames)
                .toList();
        stack = new Frames(all);
        return all;
    }
}
