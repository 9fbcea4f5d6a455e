package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Thrown if an allocator broke its contract, for example by returning an address that is still live. Nothing
/// was allocated.
public final class AllocatorContractException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Makes an exception that says which allocator did what.
    public AllocatorContractException(String message) {
        super(message);
    }

    /// Makes an exception that says which allocator did what, with its cause.
    public AllocatorContractException(String message, Throwable cause) {
        super(message, cause);
    }
}
