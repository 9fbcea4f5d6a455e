package io.cistern.guice;

import java.util.Set;

/// Holds one request to the module and the line of the program that made it.
///
/// @param what the requested configuration
/// @param source the line of the program
record Declaration<T>(T what, Object source) {
    private static final Set<String> MODULE = Set.of(Declaration.class.getName(), CisternModule.class.getName());

    /// Returns a declaration with the line of the module's caller.
    static <T> Declaration<T> here(T what) {
        Object source = StackWalker.getInstance()
                .walk(frames -> frames.filter(frame -> !MODULE.contains(frame.getClassName()))
                        .findFirst()
                        .<Object>map(StackWalker.StackFrame::toStackTraceElement)
                        .orElse("unknown"));
        return new Declaration<>(what, source);
    }
}
