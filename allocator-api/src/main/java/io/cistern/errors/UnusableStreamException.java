package io.cistern.errors;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Thrown for a stream that can't be used in a call: the per-thread default stream on a virtual thread, or
/// a stream in a capture that was not announced.
public final class UnusableStreamException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final int device;
    private final long stream;

    /// Creates an exception whose message names the stream. `reason` says why the stream can't be used, and
    /// what to do instead.
    public UnusableStreamException(int device, long stream, String reason) {
        super("stream 0x" + Long.toHexString(stream) + " of device " + device + " can't be used here: " + reason);
        this.device = device;
        this.stream = stream;
    }

    /// Returns the device of the stream.
    public int device() {
        return device;
    }

    /// Returns the stream's handle.
    public long stream() {
        return stream;
    }
}
