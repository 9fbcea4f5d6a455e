package io.cistern.handles;

import io.cistern.cuda.CisternException;

/// A library's handle can't be had: the library did not create one, which is the cause, or all that the pool
/// may have are in use.
public final class HandleException extends CisternException {
    private static final long serialVersionUID = 1;

    HandleException(String message) {
        super(message);
    }

    HandleException(String message, Throwable cause) {
        super(message, cause);
    }
}
