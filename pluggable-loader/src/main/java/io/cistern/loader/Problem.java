package io.cistern.loader;

import java.util.ServiceConfigurationError;

/// The words for what went wrong with a provider, made to follow its name.
final class Problem {
    private Problem() {}

    /// An error of the service loader, without the service's name in front, or of the class loader.
    static String loading(Throwable error) {
        if (!(error instanceof ServiceConfigurationError)) {
            return "fails to load: " + error;
        }
        String message = String.valueOf(error.getMessage());
        String reason = message.startsWith("io.cistern.") ? message.substring(message.indexOf(": ") + 2) : message;
        return "fails to load: " + reason + (error.getCause() == null ? "" : ": " + error.getCause());
    }
}
