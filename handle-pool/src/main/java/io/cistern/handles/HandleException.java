package io.cistern.handles;

import io.cistern.cuda.CisternException;

/// Reports that no handle is available: the library failed to create one (its exception is the cause), or all
/// handles that the pool may have are in use.
public final class HandleException extends CisternException {
    private static final long serialVersionUID = 1;

    HandleException(String message) {
        super(message);
    }

    HandleException(String message, Throwable cause) {
        super(message, cause);
    }
}
