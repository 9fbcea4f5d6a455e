package io.cistern.cuda;

import java.io.Serial;

/// The base of every unchecked exception type that Cistern defines for programs. One catch clause covers errors
/// of the driver, of NVRTC and of NCCL, running out of memory, and invalid configuration. A misused call
/// throws a standard Java exception instead, for example [IllegalArgumentException].
///
/// A plug-in may derive its own errors from this type. They reach the program unchanged.
public abstract class CisternException extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// @param message the error message
    protected CisternException(String message) {
        super(message);
    }

    /// @param message the error message
    /// @param cause the exception that caused this one
    protected CisternException(String message, Throwable cause) {
        super(message, cause);
    }
}
