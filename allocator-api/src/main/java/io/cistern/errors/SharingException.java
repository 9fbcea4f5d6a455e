package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Memory that could not be shared with another process, or a partner that is not what it should be. What the
/// driver refuses is an [io.cistern.cuda.CudaException] as ever.
public final class SharingException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final Reason reason;

    /// What kind of failure it is.
    public enum Reason {
        /// This system, driver or device can't share memory this way.
        NOT_SUPPORTED,
        /// The memory can't be shared: its pool was not created for it, or it is not a whole allocation.
        NOT_SHAREABLE,
        /// Nobody is there, or nobody answers.
        UNREACHABLE,
        /// The other process belongs to another user.
        WRONG_USER,
        /// The other process speaks another version of the protocol.
        WRONG_VERSION,
        /// The memory is on a device that this process does not see.
        WRONG_DEVICE,
        /// Nothing is shared under that name.
        UNKNOWN_NAME,
        /// What is shared has another size than expected.
        WRONG_SIZE,
        /// Others still use the memory.
        IN_USE,
        /// The other process has ended or has closed the connection.
        PEER_LOST,
        /// The other process sent what is no message of the protocol, or not the one that was due.
        MALFORMED,
        /// The other process failed to do its part.
        PEER_FAILED
    }

    /// Says what is wrong.
    public SharingException(Reason reason, String message) {
        super(message);
        this.reason = reason;
    }

    /// Says what is wrong, and what caused it.
    public SharingException(Reason reason, String message, Throwable cause) {
        super(message, cause);
        this.reason = reason;
    }

    /// What kind of failure it is.
    public Reason reason() {
        return reason;
    }
}
