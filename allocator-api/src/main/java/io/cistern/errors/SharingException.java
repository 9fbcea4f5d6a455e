package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Thrown if memory can't be shared with another process, device or library, or if the other side does not
/// follow the protocol. If the driver refuses, an [io.cistern.cuda.CudaException] is thrown instead.
public final class SharingException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final Reason reason;

    /// The kinds of failure.
    public enum Reason {
        /// This system, driver or device can't share memory in the requested way.
        NOT_SUPPORTED,
        /// The memory can't be shared: its pool was not created for sharing, or the memory is not a whole
        /// allocation.
        NOT_SHAREABLE,
        /// No process serves a pool at the socket's path, the process there does not answer in time, or
        /// this process can't serve at the path.
        UNREACHABLE,
        /// The other process belongs to another user.
        WRONG_USER,
        /// The other side speaks another version of the protocol.
        WRONG_VERSION,
        /// The memory is on a device that this process does not see, or not on the requested one.
        WRONG_DEVICE,
        /// Nothing is shared under the requested name.
        UNKNOWN_NAME,
        /// The shared memory has an unexpected size.
        WRONG_SIZE,
        /// Other processes still use the memory.
        IN_USE,
        /// The other process has ended or has closed the connection.
        PEER_LOST,
        /// The other side broke the protocol.
        MALFORMED,
        /// The other process failed to do its part.
        PEER_FAILED
    }

    /// Creates an exception with a human-readable message.
    public SharingException(Reason reason, String message) {
        super(message);
        this.reason = reason;
    }

    /// Creates an exception with a human-readable message and a cause.
    public SharingException(Reason reason, String message, Throwable cause) {
        super(message, cause);
        this.reason = reason;
    }

    /// Returns the kind of failure.
    public Reason reason() {
        return reason;
    }
}
