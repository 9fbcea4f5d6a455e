package io.cistern.cuda;

/// Says whether a capture forbids calls that can't become nodes of its graph, with the numbers of
/// `CUstreamCaptureMode`. Such calls allocate or free memory outside stream order, wait for streams or events,
/// or query them.
public enum CaptureMode {
    /// The calls are refused on every thread while any thread captures in this mode. This is the initial mode
    /// of each thread.
    GLOBAL(0),
    /// The calls are refused on the thread that captures.
    THREAD_LOCAL(1),
    /// The calls are allowed. Another thread may end the capture.
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
