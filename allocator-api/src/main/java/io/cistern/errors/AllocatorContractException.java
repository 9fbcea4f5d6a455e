package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// An allocator broke its contract, for example by returning an address that is still live. Nothing was allocated.
public final class AllocatorContractException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Says which allocator did what.
    public AllocatorContractException(String message) {
        super(message);
    }

    /// Says which allocator did what, and what caused it.
    public AllocatorContractException(String message, Throwable cause) {
        super(message, cause);
    }
}
