package io.cistern.torch;

import io.cistern.errors.DeviceOutOfMemoryException;
import org.jspecify.annotations.Nullable;

/// What failed last in a call from C, on each thread: C asks for it at once, on the same thread.
final class Failure {
    private static final ThreadLocal<@Nullable Throwable> LAST = new ThreadLocal<>();

    private Failure() {}

    static void keep(Throwable failure) {
        try {
            LAST.set(failure);
        } catch (Throwable full) {
            // The Java heap is full: C says so itself when there is no text.
        }
    }

    static @Nullable Throwable last() {
        return LAST.get();
    }

    static boolean isOutOfMemory(@Nullable Throwable failure) {
        return failure instanceof DeviceOutOfMemoryException;
    }

    /// Its message, and those of the causes that tell more. A lack of memory tells all in its own.
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
