package io.cistern.cuda;

import java.io.Serial;

/// Base of every unchecked exception type that Cistern defines for programs: one catch clause for what the driver,
/// NVRTC and NCCL refuse, for memory that runs out, and for wrong configuration. A misuse of a call is a standard
/// Java exception instead, for example [IllegalArgumentException].
///
/// A plug-in may derive errors of its own from it. They reach the program as they are.
public abstract class CisternException extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// Says what went wrong.
    protected CisternException(String message) {
        super(message);
    }

    /// Says what went wrong, and what caused it.
    protected CisternException(String message, Throwable cause) {
        super(message, cause);
    }
}
