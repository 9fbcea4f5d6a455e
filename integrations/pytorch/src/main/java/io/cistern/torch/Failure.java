package io.cistern.torch;

import io.cistern.errors.DeviceOutOfMemoryException;
import org.jspecify.annotations.Nullable;

/// Keeps the last failure of a call from C for each thread. C retrieves it at once, on the same thread.
final class Failure {
    private static final ThreadLocal<@Nullable Throwable> LAST = new ThreadLocal<>();

    private Failure() {}

    static void keep(Throwable failure) {
        try {
            LAST.set(failure);
        } catch (Throwable full) {
            // The Java heap is full. C has a message of its own for a failure without text.
        }
    }

    static @Nullable Throwable last() {
        return LAST.get();
    }

    static boolean isOutOfMemory(@Nullable Throwable failure) {
        return failure instanceof DeviceOutOfMemoryException;
    }

    /// Returns the failure's message and those of its causes, without repetitions. An out-of-memory message
    /// is complete in itself.
    static String text(Throwable failure) {
        StringBuilder text = new StringBuilder();
        for (Throwable each = failure; each != null; each = isOutOfMemory(each) ? null : each.getCause()) {
            String message = each.getMessage();
            String said = message == null || !(each instanceof RuntimeException) ? each.toString() : message;
            if (text.indexOf(said) < 0) {
                text.append(text.isEmpty() ? "" : "; because: ").append(said);
            }
        }
        return text.toString();
    }
}
