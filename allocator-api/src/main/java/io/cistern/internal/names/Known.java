package io.cistern.internal.names;

import java.util.function.Supplier;

/// Asks plug-ins and the driver for reports, which never throw.
public final class Known {
    private Known() {}

    /// Returns the answer to a question; `otherwise` if a plug-in or the driver fails to answer.
    public static <T> T orElse(Supplier<? extends T> question, T otherwise) {
        try {
            return question.get();
        } catch (RuntimeException unavailable) {
            return otherwise;
        }
    }
}
