package io.cistern;

/// Hears that a stream [ends][DeviceMemory#streamClosing].
@FunctionalInterface
public interface StreamClosingListener {
    /// Releases what is kept for a stream. Called on the thread that announces the end, outside all locks, while the
    /// stream still exists.
    ///
    /// @param device the stream's device
    /// @param stream a `CUstream`
    void closing(int device, long stream);
}
