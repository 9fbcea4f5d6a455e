package io.cistern.spi;

/// Specifies whether a trim may wait for running work.
public enum TrimMode {
    /// Does not wait. Only memory that no running work can use goes back.
    WITHOUT_WAITING,

    /// First waits for all work enqueued so far on the device, so that all idle memory can go back. While a
    /// stream is captured, the trim waits only if the capture allows it.
    SYNCHRONIZE
}
