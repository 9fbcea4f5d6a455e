package io.cistern.spi;

/// Whether giving memory back may wait.
public enum TrimMode {
    /// Only what no running work can use goes back; nothing is waited for.
    WITHOUT_WAITING,

    /// All work that was given to the device is waited for first, so that all idle memory can go back; while a stream
    /// is captured, only what that does not forbid to wait for.
    SYNCHRONIZE
}
