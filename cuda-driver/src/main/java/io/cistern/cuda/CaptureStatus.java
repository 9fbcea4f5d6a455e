package io.cistern.cuda;

/// What a stream does with work that it is given, with the numbers of `CUstreamCaptureStatus`.
public enum CaptureStatus {
    /// Runs it.
    NONE,
    /// Puts it into a graph.
    ACTIVE,
    /// Refuses it: the capture went wrong and waits for its end.
    INVALIDATED;

    /// The number in `CUstreamCaptureStatus`.
    public int code() {
        return switch (this) {
            case NONE -> 0;
            case ACTIVE -> 1;
            case INVALIDATED -> 2;
        };
    }

    /// The constant for a number; one that this version does not know is no capture to go on with.
    public static CaptureStatus of(int code) {
        return switch (code) {
            case 0 -> NONE;
            case 1 -> ACTIVE;
            default -> INVALIDATED;
        };
    }
}
