package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Thrown for a spec, an option or a setting that can't be followed: an unknown name or key, a value out of
/// range, two plug-ins with the same name, a plug-in for a newer SPI. The message names the given value and the
/// legal ones.
public final class ConfigurationException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Makes an exception with a human-readable message.
    public ConfigurationException(String message) {
        super(message);
    }

    /// Makes an exception with a human-readable message and a cause.
    public ConfigurationException(String message, Throwable cause) {
        super(message, cause);
    }
}
