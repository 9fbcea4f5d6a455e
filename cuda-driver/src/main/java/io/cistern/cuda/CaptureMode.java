package io.cistern.cuda;

/// How a capture and calls that it can't see get on, with the numbers of `CUstreamCaptureMode`. Such calls are
/// those that obtain or free memory past streams, wait for streams or events, or ask them.
public enum CaptureMode {
    /// Refused on every thread, while any thread captures in this mode; a thread's own mode at first.
    GLOBAL(0),
    /// Refused on the thread that captures.
    THREAD_LOCAL(1),
    /// Allowed. The capture may be ended by another thread.
    RELAXED(2);

    private final int code;

    CaptureMode(int code) {
        this.code = code;
    }

    /// The number in `CUstreamCaptureMode`.
    public int code() {
        return code;
    }

    /// The constant for a number.
    ///
    /// @throws IllegalArgumentException if there is none
    public static CaptureMode of(int code) {
        return switch (code) {
            case 0 -> GLOBAL;
            case 1 -> THREAD_LOCAL;
            case 2 -> RELAXED;
            default -> throw new IllegalArgumentException("no capture mode has number " + code);
        };
    }
}
