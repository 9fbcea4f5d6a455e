package io.cistern.internal.names;

import java.io.Serial;
import java.util.Arrays;
import java.util.List;

/// The calling thread's stack. It is kept as an exception keeps it, and turned into text when somebody asks:
/// faster than a [StackWalker], which must resolve each frame at once, even where it looks at few only.
public final class CallStack extends Throwable {
    @Serial
    private static final long serialVersionUID = 1L;

    public CallStack() {
        super(null, null, false, true);
    }

    /// The frames of the program, the innermost first.
    ///
    /// @param most more are left out
    public List<StackTraceElement> frames(int most) {
        return Arrays.stream(getStackTrace())
                .dropWhile(frame -> FrameworkFrames.contains(frame.getClassName()))
                .limit(most)
                .toList();
    }
}
