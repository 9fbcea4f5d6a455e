package io.cistern.guice;

import java.util.Set;

/// Something that a program asked of the module, and where it did.
///
/// @param what the configuration
/// @param source the line of the program
record Declaration<T>(T what, Object source) {
    private static final Set<String> MODULE = Set.of(Declaration.class.getName(), CisternModule.class.getName());

    /// With the caller's line.
    static <T> Declaration<T> here(T what) {
        Object source = StackWalker.getInstance()
                .walk(frames -> frames.filter(frame -> !MODULE.contains(frame.getClassName()))
                        .findFirst()
                        .<Object>map(StackWalker.StackFrame::toStackTraceElement)
                        .orElse("unknown"));
        return new Declaration<>(what, source);
    }
}
