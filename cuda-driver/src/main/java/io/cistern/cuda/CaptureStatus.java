package io.cistern.cuda;

/// Describes what a stream does with work submitted to it, with the numbers of `CUstreamCaptureStatus`.
public enum CaptureStatus {
    /// Runs the work.
    NONE,
    /// Puts the work into a graph.
    ACTIVE,
    /// Rejects the work: the capture has failed but not yet ended.
    INVALIDATED;

    /// Returns the number in `CUstreamCaptureStatus`.
    public int code() {
        return switch (this) {
            case NONE -> 0;
            case ACTIVE -> 1;
            case INVALIDATED -> 2;
        };
    }

    /// Returns the constant for a number, or [#INVALIDATED] if the number is unknown.
    public static CaptureStatus of(int code) {
        return switch (code) {
            case 0 -> NONE;
            case 1 -> ACTIVE;
            default -> INVALIDATED;
        };
    }
}
