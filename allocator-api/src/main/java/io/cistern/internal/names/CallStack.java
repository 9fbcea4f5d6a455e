package io.cistern.internal.names;

import java.io.Serial;
import java.util.Arrays;
import java.util.List;

/// The calling thread's stack. It is kept as in an exception, and turned into frames when somebody asks. That
/// is faster than a [StackWalker], which must resolve each frame at once, even if it visits only a few.
public final class CallStack extends Throwable {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Prefixes of the JDK's classes that run a scope's body.
    private static final List<String> OF_SCOPES =
            List.of("java.lang.ScopedValue", "jdk.internal.vm.ScopedValueContainer");

    public CallStack() {
        super(null, null, false, true);
    }

    /// Returns the frames of the program, the innermost first, without those that run the bodies of scopes.
    ///
    /// @param most the most frames to return
    public List<StackTraceElement> frames(int most) {
        return Arrays.stream(getStackTrace())
                .filter(frame -> !FrameworkFrames.contains(frame.getClassName())
                        && OF_SCOPES.stream().noneMatch(frame.getClassName()::startsWith))
                .limit(most)
                .toList();
    }
}
