package io.cistern.internal.names;

import java.util.List;

/// Distinguishes the framework's frames on a stack from those of the program: a reader of a leak or a misuse wants to
/// see the code that called the framework.
public final class FrameworkFrames {
    private static final String PROGRAM_API = "io.cistern.";

    /// Name prefixes of other classes that stand between a program and an allocator.
    private static final List<String> LAYERS = List.of(
            "io.cistern.internal.",
            "io.cistern.graph.",
            "io.cistern.buffers.",
            "io.cistern.jcuda.CisternMalloc",
            "io.cistern.jcuda.JCudaMalloc",
            "io.cistern.javacpp.CisternMalloc",
            "io.cistern.javacpp.DevicePointer",
            "io.cistern.observability.MemoryHistory$");

    private FrameworkFrames() {}

    /// Returns the place in the program that called the framework: the innermost frame of other code on this
    /// thread's stack.
    public static StackTraceElement caller() {
        return StackWalker.getInstance()
                .walk(frames -> frames.dropWhile(frame -> contains(frame.getClassName()))
                        .findFirst()
                        .map(StackWalker.StackFrame::toStackTraceElement)
                        .orElse(new StackTraceElement("unknown", "unknown", null, -1)));
    }

    /// Returns whether a class is the framework's own.
    public static boolean contains(String className) {
        return isProgramApi(className) || LAYERS.stream().anyMatch(className::startsWith);
    }

    private static boolean isProgramApi(String className) {
        return className.startsWith(PROGRAM_API) && className.indexOf('.', PROGRAM_API.length()) < 0;
    }
}
