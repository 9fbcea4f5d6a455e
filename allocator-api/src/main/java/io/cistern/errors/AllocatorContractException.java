package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Thrown if an allocator broke its contract, for example by returning an address that is still live. Nothing
/// was allocated.
public final class AllocatorContractException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Makes an exception with a message that says which allocator broke its contract, and how.
    public AllocatorContractException(String message) {
        super(message);
    }

    /// Makes an exception with a message that says which allocator broke its contract, and how, and with a
    /// cause.
    public AllocatorContractException(String message, Throwable cause) {
        super(message, cause);
    }
}
