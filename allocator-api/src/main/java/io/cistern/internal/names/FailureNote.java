package io.cistern.internal.names;

import java.io.Serial;

/// A note, among the suppressed exceptions of an allocator's exception, that names the allocator. The
/// exception itself reaches the program unchanged, since the program may depend on its type and message; a
/// stack trace shows both.
public final class FailureNote extends Exception {
    @Serial
    private static final long serialVersionUID = 1L;

    private FailureNote(String message) {
        super(message, null, false, false);
    }

    /// Returns a call that adds a note to what it throws.
    public static Runnable adding(String message, Runnable call) {
        return () -> {
            try {
                call.run();
            } catch (Throwable failure) {
                add(failure, message);
                throw failure;
            }
        };
    }

    /// Adds a note, once, also to an exception that is thrown again and again.
    public static void add(Throwable failure, String message) {
        if (failure instanceof VirtualMachineError) {
            return; // there may be no heap or stack for a note
        }
        for (Throwable other : failure.getSuppressed()) {
            if (other instanceof FailureNote && message.equals(other.getMessage())) {
                return;
            }
        }
        failure.addSuppressed(new FailureNote(message));
    }
}
