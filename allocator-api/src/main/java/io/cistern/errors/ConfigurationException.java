package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Thrown if a spec, an option or a setting is invalid or can't be applied here: for example for an unknown
/// name or key, a value out of range, two plug-ins with the same name, or a plug-in for a newer SPI. For an
/// invalid name or value, the message lists the valid ones.
public final class ConfigurationException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Creates an exception with a human-readable message.
    public ConfigurationException(String message) {
        super(message);
    }

    /// Creates an exception with a human-readable message and a cause.
    public ConfigurationException(String message, Throwable cause) {
        super(message, cause);
    }
}
