package io.cistern.handles;

import io.cistern.cuda.CisternException;

/// Reports that no handle is available: the library did not create one, which is the cause, or the pool's limit
/// is in use.
public final class HandleException extends CisternException {
    private static final long serialVersionUID = 1;

    HandleException(String message) {
        super(message);
    }

    HandleException(String message, Throwable cause) {
        super(message, cause);
    }
}
