package io.cistern.internal.names;

import java.io.Serial;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/// The calling thread's stack. It is kept as in an exception, and turned into frames when somebody asks. That
/// is faster than a [StackWalker], which must resolve each frame at once, even if it visits only a few.
public final class CallStack extends Throwable {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Stand between a program that calls a scope and what it does inside.
    private static final List<String> OF_SCOPES =
            List.of("java.lang.ScopedValue", "jdk.internal.vm.ScopedValueContainer");

    public CallStack() {
        super(null, null, false, true);
    }

    /// Returns the frames of the program, the innermost first, without those of scopes between them.
    ///
    /// @param most the most frames to return
    public List<StackTraceElement> frames(int most) {
        return ofProgram().limit(most).toList();
    }

    private Stream<StackTraceElement> ofProgram() {
        return Arrays.stream(getStackTrace()).filter(frame -> {
            String name = frame.getClassName();
            return !FrameworkFrames.contains(name) && OF_SCOPES.stream().noneMatch(name::startsWith);
        });
    }
}
