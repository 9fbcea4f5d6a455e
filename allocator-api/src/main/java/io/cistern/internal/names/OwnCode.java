package io.cistern.internal.names;

import java.util.Set;

/// The framework's own code on the way from a program to an allocator or a copy: who reads of a leak or a misuse wants
/// to see the code that called it.
public final class OwnCode {
    private static final Set<String> LAYERS = Set.of(
            "io.cistern.Allocator",
            "io.cistern.Allocators",
            "io.cistern.ArenaChunk",
            "io.cistern.BatchCopy",
            "io.cistern.CopyBatch",
            "io.cistern.DeviceArena",
            "io.cistern.DeviceBuffer",
            "io.cistern.DeviceCopies",
            "io.cistern.DeviceElements",
            "io.cistern.DeviceMemory",
            "io.cistern.ForeignMemory",
            "io.cistern.HostCopies",
            "io.cistern.HostRows",
            "io.cistern.MemoryPool",
            "io.cistern.OpenScopes",
            "io.cistern.PageableCopies",
            "io.cistern.Pools",
            "io.cistern.RawBlocks",
            "io.cistern.Scope",
            "io.cistern.StagedCopy");

    private static final String PACKAGES = "io.cistern.internal.";

    private OwnCode() {}

    /// The place in the program that called the framework: the innermost frame of other code on this thread's
    /// stack. It takes about a microsecond.
    public static StackTraceElement caller() {
        return StackWalker.getInstance()
                .walk(frames -> frames.dropWhile(frame -> contains(frame.getClassName()))
                        .findFirst()
                        .map(StackWalker.StackFrame::toStackTraceElement)
                        .orElse(new StackTraceElement("unknown", "unknown", null, -1)));
    }

    /// Whether a class is one of these, or nested in one.
    public static boolean contains(String className) {
        int nested = className.indexOf('$');
        return className.startsWith(PACKAGES)
                || LAYERS.contains(nested < 0 ? className : className.substring(0, nested));
    }
}
