package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Thrown if an allocator broke its contract, for example by returning an address that is still live. Nothing
/// was allocated.
public final class AllocatorContractException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Creates an exception with a message that names the allocator and says how it broke its contract.
    public AllocatorContractException(String message) {
        super(message);
    }

    /// Creates an exception with a cause and a message that names the allocator and says how it broke its
    /// contract.
    public AllocatorContractException(String message, Throwable cause) {
        super(message, cause);
    }
}
