package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// A spec, an option or a choice that can't be followed: an unknown name or key, a value out of range, two plug-ins
/// of one name, a plug-in of a newer SPI. The message names what was given and what would be legal.
public final class ConfigurationException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Says what is wrong.
    public ConfigurationException(String message) {
        super(message);
    }

    /// Says what is wrong, and what caused it.
    public ConfigurationException(String message, Throwable cause) {
        super(message, cause);
    }
}
