package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// A stream that can't be named where it was: the per-thread default stream on a virtual thread. Nothing was done.
public final class UnusableStreamException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final int device;
    private final long stream;

    /// Says which stream, why not, and what to do.
    public UnusableStreamException(int device, long stream, String reason) {
        super("stream 0x" + Long.toHexString(stream) + " of device " + device + " can't be used here: " + reason);
        this.device = device;
        this.stream = stream;
    }

    /// The device of the stream.
    public int device() {
        return device;
    }

    /// The stream's handle.
    public long stream() {
        return stream;
    }
}
