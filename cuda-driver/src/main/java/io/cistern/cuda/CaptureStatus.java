package io.cistern.cuda;

/// Says what a stream does with the work it is given, with the numbers of `CUstreamCaptureStatus`.
public enum CaptureStatus {
    /// Runs the work.
    NONE,
    /// Puts the work into a graph.
    ACTIVE,
    /// Refuses the work: the capture failed and has yet to be ended.
    INVALIDATED;

    /// Returns the number in `CUstreamCaptureStatus`.
    public int code() {
        return switch (this) {
            case NONE -> 0;
            case ACTIVE -> 1;
            case INVALIDATED -> 2;
        };
    }

    /// Returns the constant for a number; [#INVALIDATED] for a number that this version does not know.
    public static CaptureStatus of(int code) {
        return switch (code) {
            case 0 -> NONE;
            case 1 -> ACTIVE;
            default -> INVALIDATED;
        };
    }
}
