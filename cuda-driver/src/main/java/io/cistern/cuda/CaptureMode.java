package io.cistern.cuda;

/// Says what happens during a capture to calls that it can't see, with the numbers of `CUstreamCaptureMode`.
/// Such calls obtain or free memory outside stream order, wait for streams or events, or query them.
public enum CaptureMode {
    /// Refused on every thread while any thread captures in this mode. The initial mode of each thread.
    GLOBAL(0),
    /// Refused on the capturing thread.
    THREAD_LOCAL(1),
    /// Allowed. Another thread may end the capture.
    RELAXED(2);

    private final int code;

    CaptureMode(int code) {
        this.code = code;
    }

    /// Returns the number in `CUstreamCaptureMode`.
    public int code() {
        return code;
    }

    /// Returns the constant for a number.
    ///
    /// @throws IllegalArgumentException if no constant has this number
    public static CaptureMode of(int code) {
        return switch (code) {
            case 0 -> GLOBAL;
            case 1 -> THREAD_LOCAL;
            case 2 -> RELAXED;
            default -> throw new IllegalArgumentException("no capture mode has number " + code);
        };
    }
}
