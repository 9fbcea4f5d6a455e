package io.cistern.internal.names;

import java.io.Serial;

/// Beside what an allocator threw, as one of its suppressed exceptions: which allocator it was. What was thrown
/// reaches the program as it is, since that may know its type and its message; a stack trace tells both.
public final class FailureNote extends Exception {
    @Serial
    private static final long serialVersionUID = 1L;

    private FailureNote(String message) {
        super(message, null, false, false);
    }

    /// Adds a note, once, also to an exception that is thrown again and again.
    public static void add(Throwable failure, String message) {
        if (failure instanceof VirtualMachineError) {
            return; // there may be no heap or stack for one
        }
        for (Throwable other : failure.getSuppressed()) {
            if (other instanceof FailureNote && message.equals(other.getMessage())) {
                return;
            }
        }
        failure.addSuppressed(new FailureNote(message));
    }
}
